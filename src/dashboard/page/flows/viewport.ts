/** A picture that can be moved and zoomed: by wheel, drag, pinch, keys and buttons. */
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** A point of the picture is shown at `x + k * point.x`. */
export interface Viewport {
  x: number;
  y: number;
  k: number;
}

interface Size {
  width: number;
  height: number;
}

const [LEAST, MOST, STEP, MARGIN] = [0.03, 2.5, 1.3, 16];
/** A pointer that has moved less is a click. */
const CLICK = 4;

export interface Movable {
  viewport: Viewport;
  size: Size;
  fit: () => void;
  zoom: (factor: number) => void;
  /** Brings a point of the picture to the middle, large enough to be read. */
  center: (x: number, y: number) => void;
  onKeyDown: (event: KeyboardEvent) => void;
  /** The last press was a drag: its click means nothing. */
  dragged: () => boolean;
}

export function useViewport(place: RefObject<HTMLElement | null>, picture: Size | undefined): Movable {
  const size = useSize(place);
  const [viewport, setViewport] = useState<Viewport>({ x: 0, y: 0, k: 1 });
  const now = useRef(viewport);
  const moved = useRef(false);
  const change = (next: Viewport) => {
    now.current = next;
    setViewport(next);
  };
  const zoomAt = (factor: number, x: number, y: number) => change(zoomed(now.current, factor, x, y));
  const fit = () => {
    if (picture && size.width > 0) change(fitted(picture, size));
  };
  const ready = picture !== undefined && size.width > 0;
  useEffect(() => {
    if (ready) change(opened(picture, size));
  }, [ready]);
  useEffect(() => (place.current ? follow(place.current, now, change, zoomAt, moved) : undefined), []);
  const zoom = (factor: number) => zoomAt(factor, size.width / 2, size.height / 2);
  const center = (x: number, y: number) => {
    const k = Math.max(now.current.k, 0.8);
    change({ k, x: size.width / 2 - x * k, y: size.height / 2 - y * k });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = (dx: number, dy: number) => change({ ...now.current, x: now.current.x + dx, y: now.current.y + dy });
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '+' || event.key === '=') zoom(STEP);
    else if (event.key === '-') zoom(1 / STEP);
    else if (event.key === '0') fit();
    else if (event.key === 'ArrowLeft') step(60, 0);
    else if (event.key === 'ArrowRight') step(-60, 0);
    else if (event.key === 'ArrowUp') step(0, 60);
    else if (event.key === 'ArrowDown') step(0, -60);
    else return;
    event.preventDefault();
  };
  return { viewport, size, fit, zoom, center, onKeyDown, dragged: () => moved.current };
}

function zoomed({ x, y, k }: Viewport, factor: number, atX: number, atY: number): Viewport {
  const next = Math.min(MOST, Math.max(LEAST, k * factor));
  return { k: next, x: atX - ((atX - x) * next) / k, y: atY - ((atY - y) * next) / k };
}

/** All of it; a long picture whose texts would be too small to read begins at its left end instead. */
function opened(picture: Size, size: Size): Viewport {
  const whole = fitted(picture, size);
  const readable = Math.min(0.7, (size.height - 2 * MARGIN) / picture.height);
  if (whole.k >= 0.55 || readable < 0.55) return whole;
  return { k: readable, x: MARGIN, y: Math.max(MARGIN, (size.height - picture.height * readable) / 2) };
}

/** All of it, but not larger than life. */
function fitted(picture: Size, size: Size): Viewport {
  const whole = Math.min((size.width - 2 * MARGIN) / picture.width, (size.height - 2 * MARGIN) / picture.height, 1);
  const k = Math.max(LEAST, Number.isFinite(whole) ? whole : 1);
  const x = Math.max(MARGIN, (size.width - picture.width * k) / 2);
  return { k, x, y: Math.max(MARGIN, (size.height - picture.height * k) / 2) };
}

/** Listens by hand, because the wheel must not scroll the page. */
function follow(
  place: HTMLElement,
  now: { current: Viewport },
  change: (next: Viewport) => void,
  zoomAt: (factor: number, x: number, y: number) => void,
  moved: { current: boolean },
): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const pointers = new Map<number, { x: number; y: number }>();
  const at = (event: MouseEvent) => {
    const { left, top } = place.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const { x, y } = at(event);
    const lines = event.deltaMode === 1 ? 20 : 1;
    zoomAt(Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 400)), x, y);
  };
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0 || (event.target as Element).closest('button')) return;
    pointers.set(event.pointerId, at(event));
    if (pointers.size === 1) moved.current = false;
  };
  const onMove = (event: PointerEvent) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const after = at(event);
    const [dx, dy] = [after.x - before.x, after.y - before.y];
    if (!moved.current && Math.hypot(dx, dy) < CLICK) return;
    moved.current = true;
    place.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, after);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) zoomAt(distance(after, other) / Math.max(1, distance(before, other)), other.x, other.y);
    else change({ ...now.current, x: now.current.x + dx, y: now.current.y + dy });
  };
  const onUp = (event: PointerEvent) => pointers.delete(event.pointerId);
  place.addEventListener('wheel', onWheel, { passive: false, signal });
  place.addEventListener('pointerdown', onDown, { signal });
  place.addEventListener('pointermove', onMove, { signal });
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture'] as const)
    place.addEventListener(name, onUp, { signal });
  return () => stop.abort();
}

function distance(a: { x: number; y: number }, b: { x: number; y: number }): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

export function useSize(place: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      setSize({ width, height });
    });
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return size;
}
