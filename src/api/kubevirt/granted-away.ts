/** What is told to whoever wants a machine to run whose guest went to another namespace or cluster; for people. */
export function grantedAwayFix(namespace: string, name: string): string {
  const reclaim = `godwit reclaim ${name} -n ${namespace} --i-have-fenced-the-other-side`;
  return `to get it back, set runStrategy WaitAsReceiver and migrate it here; or, once nothing of it runs there any more: ${reclaim}`;
}
