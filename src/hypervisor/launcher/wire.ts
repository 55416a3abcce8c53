/** What an agent and the launcher in a pod tell each other, one JSON object a line; pure. */

/** What an agent wants of a launcher. */
export type LauncherOrder =
  /** Start the pod's machine: QEMU, with these arguments. */
  | { readonly kind: 'start'; readonly arguments: readonly string[] }
  /** Say how the machine ends that was started here before. */
  | { readonly kind: 'watch' }
  /** End, as a container that has ended like that. */
  | ({ readonly kind: 'end' } & LauncherEnd);

/** How a launcher ends. */
export interface LauncherEnd {
  readonly exitCode: number;
  /** A sentence for people. */
  readonly message: string;
}

/** What a launcher answers; of a program that was started, or is watched, it later says that it has exited. */
export type LauncherAnswer =
  | { readonly kind: 'started' | 'ending' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'exited'; readonly code?: number | undefined; readonly signal?: string | undefined };

/** What is behind the name of a launcher's socket in that of the file by which it says that it was told to end while it has a machine. */
export const NOTICE_SUFFIX = '.ending';

/** A command line of QEMU has some kilobytes. */
export const LINE_BYTES_MAX = 1024 * 1024;

/** A message as it goes over the wire. */
export function line(message: LauncherOrder | LauncherAnswer): string {
  return `${JSON.stringify(message)}\n`;
}

/** The order in a line. Throws where there is none. */
export function parseOrder(text: string): LauncherOrder {
  const said = parsed(text);
  const { kind, arguments: args, exitCode, message } = said;
  if (kind === 'start' && Array.isArray(args) && args.every(isText)) return { kind, arguments: args };
  if (kind === 'watch') return { kind };
  if (kind === 'end' && typeof exitCode === 'number' && isText(message)) return { kind, exitCode, message };
  throw new Error(`this is no order: ${text.slice(0, 100)}`);
}

/** The answer in a line. Throws where there is none. */
export function parseAnswer(text: string): LauncherAnswer {
  const { kind, message, code, signal } = parsed(text);
  if (kind === 'started' || kind === 'ending') return { kind };
  if (kind === 'refused' && isText(message)) return { kind, message };
  if (kind === 'exited')
    return { kind, code: typeof code === 'number' ? code : undefined, signal: isText(signal) ? signal : undefined };
  throw new Error(`this is no answer: ${text.slice(0, 100)}`);
}

function parsed(text: string): Record<string, unknown> {
  const said: unknown = JSON.parse(text);
  return typeof said === 'object' && said !== null ? (said as Record<string, unknown>) : {};
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
