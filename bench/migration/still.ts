/** Lets processes stand still meanwhile. */
export async function still<T>(pids: readonly number[], act: () => Promise<T>): Promise<T> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    return await act();
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
}
