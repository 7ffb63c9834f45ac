import { defineConfig } from 'vitest/config';

// Two cores, real processes and real servers: files run one after the other in forks of their own, so that no test
// starves another one's heartbeats.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    globalSetup: ['test/support/global.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The tests import what is shipped: the built package.
    server: { deps: { external: [/\/dist\//] } },
  },
});
