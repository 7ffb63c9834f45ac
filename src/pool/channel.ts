import type { SerializationType } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import { describeError, errorLine } from '../job/attempt.js';
import { whenDrained } from '../process/drained.js';
import { ForkedProgram, type ForkedProgramSetup, passOn } from '../process/forked-program.js';
import { threadFlags } from '../worker/heartbeat/thread-flags.js';
import { type HostCommand, type HostReply, replyOf } from './messages.js';

/** A process or thread that runs calls. */
export interface Channel {
  /** Resolves when it has ended. */
  readonly gone: Promise<void>;
  /** Throws when the commands cannot be serialized. */
  send(commands: readonly HostCommand[]): void;
  /** Lets it end by itself when it is idle. */
  end(): void;
  kill(): void;
}

export interface ChannelListener {
  message: (reply: HostReply) => void;
  /** What it prints to its standard error. */
  printed: (chunk: Buffer) => void;
  /** Called once, with how it ended. */
  ended: (how: string) => void;
}

export type OpenChannel = (listener: ChannelListener) => Channel;

/** `maxMemory` is in megabytes. */
export interface ProcessSetup extends Pick<ForkedProgramSetup, 'program' | 'args' | 'guarded' | 'stdout'> {
  serialization: SerializationType;
  maxMemory?: number | undefined;
}

export function processChannels({ maxMemory, ...setup }: ProcessSetup): OpenChannel {
  return ({ message, printed, ended }) => {
    const program = new ForkedProgram({
      ...setup,
      execArgv: [...inherited(process.execArgv), ...(maxMemory ? [`--max-old-space-size=${maxMemory}`] : [])],
      message: (sent) => passReply(sent, message),
      printed,
      ended,
    });
    return {
      gone: program.gone,
      send: (commands) => program.send(commands),
      end: () => program.disconnect(),
      kill: () => program.kill(),
    };
  };
}

/** The options of Node that a program inherits: not those that hold the text of ours. */
function inherited(options: readonly string[]): string[] {
  const isText = (option: string | undefined) => /^(-e|--eval|-p|--print|-pe)$/.test(option ?? '');
  return options.filter(
    (option, i) => !isText(option) && !isText(options[i - 1]) && !option.startsWith('--input-type'),
  );
}

export function threadChannels(program: URL, workerData: unknown, maxMemory: number | undefined): OpenChannel {
  return (listener) => {
    const thread = new Worker(program, {
      workerData,
      stderr: true,
      ...threadFlags(),
      ...(maxMemory === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: maxMemory } }),
    });
    return {
      gone: watch(thread, listener),
      send: (commands) => thread.postMessage(commands),
      end: () => thread.postMessage([{ end: true }] satisfies HostCommand[]),
      kill: () => void thread.terminate(),
    };
  };
}

function passReply(sent: unknown, message: ChannelListener['message']): void {
  const reply = replyOf(sent);
  if (reply) message(reply);
}

/** Resolves when the thread has ended. */
function watch(thread: Worker, { message, printed, ended }: ChannelListener): Promise<void> {
  const close = passOn(thread.stderr, printed);
  let failure: string | undefined;
  thread.on('message', (sent) => passReply(sent, message));
  thread.on('error', (error: unknown) => {
    const described = describeError(error);
    failure = errorLine(described);
    // A process would have printed it by itself.
    const text = `${described.stack ?? failure}\n`;
    process.stderr.write(text);
    printed(Buffer.from(text));
  });
  return new Promise((resolve) => {
    thread.once('exit', (code) => {
      ended(failure ?? `exit ${code}`);
      whenDrained(() => {
        close();
        resolve();
      });
    });
  });
}
