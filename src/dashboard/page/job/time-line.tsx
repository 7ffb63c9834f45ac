import type { AttemptError } from '../../../job/attempt.js';
import type { TimedLine } from '../../../job/timed-lines.js';
import type { StoryEvent } from '../../api.js';
import { CopyButton } from '../components/copy.js';
import { Name } from '../components/name.js';
import { Scroll } from '../components/scroll.js';
import { Ago, At, clock, duration, Since } from '../lib/time.js';

/** What happened to a job, oldest first; attempts that failed open up to their errors. */
export function TimeLine({ events }: { events: readonly StoryEvent[] }) {
  const lastFailure = events.findLastIndex(({ attempt }) => attempt?.error !== undefined);
  return (
    <ol class="time-line card">
      {events.map((event, index) => (
        <li
          key={`${event.kind} ${event.at} ${index}`}
          class={`event event-${event.tone ?? 'plain'} kind-${event.kind}`}
        >
          <Event event={event} open={index === lastFailure} />
        </li>
      ))}
    </ol>
  );
}

function Event({ event, open }: { event: StoryEvent; open: boolean }) {
  return (
    <>
      <div class="event-head">
        <span class="event-text">
          <bdi>{event.text}</bdi>
        </span>
        <Length event={event} />
        <span class="event-at muted">{event.kind === 'next' ? <Ago at={event.at} /> : <At at={event.at} />}</span>
      </div>
      {event.attempt?.worker !== undefined && (
        <p class="event-worker muted">
          on <Name text={event.attempt.worker} mono />
        </p>
      )}
      {event.lines && <Lines lines={event.lines} what={event.text} />}
      {event.attempt?.error && (
        <ErrorDetails error={event.attempt.error} what={`${event.text}, ${event.at}`} open={open} />
      )}
    </>
  );
}

function Length({ event: { kind, at, until } }: { event: StoryEvent }) {
  if (until !== undefined) return <span class="event-length">{duration(Math.max(0, until - at))}</span>;
  if (kind !== 'running' && kind !== 'waited') return null;
  return (
    <span class="event-length">
      <Since at={at} />
    </span>
  );
}

/** Log lines and values of progress, each with its time. */
function Lines({ lines, what }: { lines: readonly TimedLine[]; what: string }) {
  return (
    <details class="event-error">
      <summary>Show them</summary>
      <Scroll class="content wrap" label={what}>
        <pre>{lines.map(({ at, text }) => `${clock(at)}  ${text}`).join('\n')}</pre>
      </Scroll>
    </details>
  );
}

function ErrorDetails({ error, what, open }: { error: AttemptError; what: string; open: boolean }) {
  const { name, message, stack, stderr } = error;
  return (
    <details class="event-error" open={open}>
      <summary>
        <span class="error-line">
          {name !== '' && <strong>{name}: </strong>}
          {firstLine(message)}
        </span>
      </summary>
      {message.includes('\n') && <Text label="Message" text={message} what={what} />}
      {stack !== undefined && <Text label="Stack" text={stack} what={what} />}
      {stderr !== undefined && <Text label="Standard error" text={stderr} what={what} />}
    </details>
  );
}

function Text({ label, text, what }: { label: string; text: string; what: string }) {
  return (
    <div class="content-box">
      <div class="content-head">
        <span class="muted">{label}</span>
        <CopyButton text={text} />
      </div>
      <Scroll class="content" label={`${label}: ${what}`}>
        <pre>{text}</pre>
      </Scroll>
    </div>
  );
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!;
}
