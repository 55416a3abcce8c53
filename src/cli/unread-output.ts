/** What becomes of a command when it cannot print any more: whoever read it has left, or the disk is full. */

/** As of what SIGPIPE ends, which Node does not know. */
const UNREAD_EXIT_CODE = 141;
const OUTPUTS = [process.stdout, process.stderr];

/**
 * Ends the process where it cannot print: quietly where nobody reads any more, as through `head`, and else with the reason.
 * What `goesOn` by then does so unheard.
 */
export function endWhenUnread(goesOn: () => boolean): void {
  const onError = ({ code, message }: NodeJS.ErrnoException): void => {
    if (goesOn()) return;
    if (code === 'EPIPE') process.exit(UNREAD_EXIT_CODE);
    process.stderr.write(`godwit: not all of it could be printed (${message}); make room, or print it elsewhere\n`);
    process.exit(1);
  };
  for (const output of OUTPUTS) output.on('error', onError);
}

/** Ends the process once all that it has printed is out: a pipe takes but a little at a time. */
export async function endWith(exitCode: number): Promise<never> {
  for (const output of OUTPUTS) await new Promise<void>((resolve) => output.write('', () => resolve()));
  process.exit(exitCode);
}
