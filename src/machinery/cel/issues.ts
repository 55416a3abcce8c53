/** An expression that cannot be compiled. The message lists every issue as cel-go prints them, source included. */
export class CompileError extends Error {
  override readonly name = 'CompileError';
}

export interface Issue {
  readonly at: number;
  readonly message: string;
}

/** The issues as text, each with its line and a mark below the offending place. */
export function spellIssues(source: string, issues: readonly Issue[]): string {
  return issues.map((issue) => spellIssue(source, issue)).join('\n');
}

function spellIssue(source: string, issue: Issue): string {
  const before = source.slice(0, issue.at);
  const lineStart = before.lastIndexOf('\n') + 1;
  const lineEnd = source.indexOf('\n', issue.at);
  const line = before.split('\n').length;
  const column = issue.at - lineStart;
  const text = source.slice(lineStart, lineEnd < 0 ? source.length : lineEnd);
  return `ERROR: <input>:${line}:${column + 1}: ${issue.message}\n | ${text}\n | ${'.'.repeat(column)}^`;
}

/** The error of a single issue that ends compilation. */
export function compileError(source: string, at: number, message: string): CompileError {
  return new CompileError(spellIssues(source, [{ at, message }]));
}
