/** Which clusters are trusted no more as soon as nothing is on the way between them and us. */
export interface RevocableTrust {
  isRevoked(peer: string): boolean;
  /** Nothing is on the way any more. */
  release(peer: string, signal: AbortSignal): Promise<void>;
}
