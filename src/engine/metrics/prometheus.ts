import type { Metric, Sample } from './series.js';

/** Prometheus text, version 0.0.4. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function prometheusText(metrics: readonly Metric[]): string {
  const parts = metrics.map((metric) => {
    const lines = metric.samples().map((sample) => line(metric.name, sample));
    return [`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`, ...lines].join('\n');
  });
  return `${parts.join('\n')}\n`;
}

function line(name: string, { suffix = '', labels, value }: Sample): string {
  const shown = labels.map(([label, text]) => `${label}="${escaped(text)}"`).join(',');
  return `${name}${suffix}${shown === '' ? '' : `{${shown}}`} ${value}`;
}

/** Names of queues may hold anything but NUL. */
function escaped(text: string): string {
  return text.toWellFormed().replace(/[\\"\n]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`));
}
