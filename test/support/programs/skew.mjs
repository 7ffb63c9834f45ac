// Preloaded: shifts the wall clock of the process, threads included, by some milliseconds, but not the monotonic one.
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
