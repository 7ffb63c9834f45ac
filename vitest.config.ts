import { defineConfig } from 'vitest/config';

// Real processes and real servers, which mostly wait: three files at a time, in forks of their own. More would starve
// heartbeats on a small machine.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 3,
    globalSetup: ['test/support/global.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The tests import what is shipped: the built package.
    server: { deps: { external: [/\/dist\//] } },
  },
});
