/** Waits for something, but no longer than this many milliseconds. */
export async function within(ms: number, something: Promise<void> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([something, late]).finally(() => clearTimeout(timer));
}
