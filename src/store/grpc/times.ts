import {
  type Duration,
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from '@bufbuild/protobuf/wkt';

export function fromMs(ms: number): Duration {
  return durationFromMs(ms);
}

export function toMs(duration: Duration | undefined): number | undefined {
  return duration && durationMs(duration);
}

export function fromTime(at: number | undefined): Timestamp | undefined {
  return at === undefined ? undefined : timestampFromMs(at);
}

export function toTime(at: Timestamp | undefined): number | undefined {
  return at && timestampMs(at);
}
