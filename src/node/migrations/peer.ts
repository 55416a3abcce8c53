import type { ComparedMachine } from '../../hypervisor/compare.ts';
import type { DevicePlace, MachineSpec } from '../../hypervisor/machine.ts';
import type { MigrationAddress, MultipleChannels } from '../../hypervisor/migration.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { CopySecrets } from './copy-relays.ts';

/**
 * What the agents of a migration's two nodes say to each other, without the API server between them.
 *
 * The source asks, and the target answers. Whatever is asked names the attempt whole, and may be asked again: an answer may
 * be lost. Any answer also says how the target's machine is, and what became of the attempt there.
 */

/** How the copy is to be; the target answers what of it can be. */
export interface WantedMethod {
  readonly allowsPostCopy: boolean;
  readonly channels?: MultipleChannels;
  readonly isEncrypted: boolean;
}

/** Ports of the target that the copy may use. */
export interface AllowedPorts {
  readonly first: number;
  readonly last: number;
}

/**
 * - `open`: wait for the copy, in this way; the disks at these places will be filled;
 * - `look`: nothing but what every answer says;
 * - `letter`: one message of the protocol; with a grant comes for how long the guest has stood still;
 * - `listen-again`: the link of a post-copy broke, wait for another.
 */
export type PeerRequest =
  | {
      readonly kind: 'open';
      readonly attempt: Attempt;
      readonly method: WantedMethod;
      readonly ports?: AllowedPorts;
      readonly copiedDisks: readonly DevicePlace[];
    }
  | { readonly kind: 'look'; readonly attempt: Attempt }
  | { readonly kind: 'letter'; readonly message: Message; readonly stoppedForMs?: number }
  | { readonly kind: 'listen-again'; readonly attempt: Attempt };

/** What a request is about. */
export function attemptOf(request: PeerRequest): Attempt {
  return request.kind === 'letter' ? request.message.attempt : request.attempt;
}

export interface PeerAnswer {
  /** What the target's machine is now. */
  readonly machine: MachineFact;
  /** What the target's journal says of this attempt: `taken`, `refused`, or nothing yet. */
  readonly letters: readonly Message[];
  /** To `open`. */
  readonly opened?: Opened;
  /** To `listen-again`: where it waits now. */
  readonly listening?: MigrationAddress;
}

/** What a source needs for its copy. */
export interface Opened {
  readonly host: string;
  readonly memoryPort: number;
  /** Present where disks are to be copied. */
  readonly disksPort?: number;
  /** Present where the copy is encrypted. */
  readonly credentials?: SourceCredentials;
  /** Present where it is not, and where disks are copied: the agent's port, which is theirs then, leads to both, or to them. */
  readonly secrets?: CopySecrets;
  /** False where it was asked for, and the target's host does not let it. */
  readonly isPostCopyPossible: boolean;
  readonly machine: DescribedMachine;
  /** What tells the file behind each of the copied disks from all others on the same host, by the name of its place. */
  readonly diskFiles?: Readonly<Record<string, string>>;
}

/** Made for one migration, by its target. */
export interface SourceCredentials {
  readonly authorityPem: string;
  readonly certificatePem: string;
  readonly keyPem: string;
  /** The name that the target's certificate is for. */
  readonly peer: string;
}

/** A ComparedMachine that can be sent. */
export interface DescribedMachine {
  readonly spec: MachineSpec;
  readonly ramBytes: number;
  readonly processorCount?: number;
  readonly pluggedMemory?: number;
  /** By the name of each place. */
  readonly diskBytes?: Readonly<Record<string, number>>;
}

/** A machine as it is sent. */
export function describeMachine({ diskBytes, ...machine }: ComparedMachine): DescribedMachine {
  return { ...machine, ...(diskBytes ? { diskBytes: Object.fromEntries(diskBytes) } : {}) };
}

/** A machine as it was before it was sent. */
export function comparedMachine({ diskBytes, ...machine }: DescribedMachine): ComparedMachine {
  return { ...machine, ...(diskBytes ? { diskBytes: new Map(Object.entries(diskBytes)) } : {}) };
}

/** How requests are sent over HTTPS. */
export const PEER_METHOD = 'POST';
export const PEER_PATH = '/v1/migrations';

/** Where another agent's server is. */
export interface Peer {
  readonly node: string;
  readonly address: string;
  readonly port: number;
  /** Present where it is not of this cluster, or might not be: then it is known by one of these keys, and by nothing else. */
  readonly keys?: readonly string[];
}

/** Who asks, as far as the connection shows it. */
export interface PeerCaller {
  /** The node that it is, by the word of this cluster's authority. */
  readonly node?: string | undefined;
  /** By what its key is known, whoever has signed its certificate. */
  readonly key?: string | undefined;
}

/** The source's end. */
export interface Peers {
  /** Rejects with a PeerError. */
  exchange(peer: Peer, request: PeerRequest, signal: AbortSignal): Promise<PeerAnswer>;
}

/** The target's end. */
export interface PeerService {
  /**
   * Answers another agent, which has the key of what it has shown. Rejects with an ApiError unless it is the source of the
   * attempt, and the attempt is what is received here, or was.
   */
  answer(caller: PeerCaller, request: PeerRequest, signal: AbortSignal): Promise<PeerAnswer>;
}

/**
 * - `Unreachable`: there was no answer, so that nobody knows whether the request arrived;
 * - `Refused`: the other agent said no.
 */
export type PeerErrorCode = 'Unreachable' | 'Refused';

export class PeerError extends Error {
  readonly code: PeerErrorCode;

  constructor(code: PeerErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'PeerError';
    this.code = code;
  }
}
