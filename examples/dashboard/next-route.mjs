// The dashboard in Next.js: this file as app/jobs/[[...path]]/route.js. Next.js bundles what it can: with
// `serverExternalPackages: ['crore']` in next.config.js it leaves this package as it is.
import { open } from 'crore';
import { dashboard } from 'crore/dashboard';

export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

const jobs = dashboard(await open(), { base: '/jobs', access: 'write' });

export const GET = jobs;
export const HEAD = jobs;
export const POST = jobs;
