// Loaded before a program: the clock of its process, threads included, is off by so many milliseconds. The monotonic one is not.
const skew = Number(process.env.CRORE_TEST_SKEW);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + skew] : args));
  }
  static now() {
    return RealDate.now() + skew;
  }
};
