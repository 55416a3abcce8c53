/**
 * By which keys the agent of a node is known to the agents of other clusters, who trust no authority of this one: SHA-256
 * of public keys (SubjectPublicKeyInfo) in base64, the newest first. A node says it of itself; halves of migrations carry
 * it to the other side.
 */
export const AGENT_KEYS_ANNOTATION = 'godwit.io/agent-keys';

/** Two certificates, what may follow them, and what was before. */
const KEYS_MAX = 8;
const KEY = /^[A-Za-z0-9+/]{43}=$/;

/** The keys in a node's annotations; whatever is no key is passed over. */
export function agentKeysOf(annotations: Readonly<Record<string, string>> | undefined): string[] {
  const words = (annotations?.[AGENT_KEYS_ANNOTATION] ?? '').split(' ');
  return words.filter((word) => KEY.test(word)).slice(0, KEYS_MAX);
}

/** Keys as an annotation has them. */
export function agentKeysText(keys: readonly string[]): string {
  return [...new Set(keys)].slice(0, KEYS_MAX).join(' ');
}
