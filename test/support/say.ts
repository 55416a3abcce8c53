/** Tells whoever reads the results something that they should know: what is left out, what is installed. */
export function say(sentence: string): void {
  // oxlint-disable-next-line no-console -- this is what the console is for
  console.log(sentence);
}
