import { errorMessage } from '../../api/error-message.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { GuestAgentChannel } from '../../hypervisor/guest-agent-channel.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { GuestAgentClient } from './guest-agent-client.ts';
import { askInfo, type GuestAgentInfo } from './guest-agent-info.ts';

/** What is known of the agent in a guest; `unknown` before anybody has looked, and where nobody can. */
export type AgentSight = 'unknown' | 'absent' | GuestAgentInfo;

/** How often an agent that is there is asked whether it still is. */
const ASK_EVERY_MS = 60_000;
/** How soon a machine is asked again that did not answer. */
const RETRY_MS = 30_000;
/**
 * How long an agent is left alone that has just gone, or did not answer. Each time that it stays for less than a while
 * it is twice as long: whatever a guest does with its agent, few writes come of it.
 */
const REST_MS = { min: 1000, max: 300_000 } as const;
const STEADY_MS = 600_000;

export interface GuestAgentsOptions {
  readonly env: Env;
  /** Called when something else is known of the agent in the guest of a pod. */
  readonly onNews: (podUID: string) => void;
}

/**
 * Looks after the agents in guests. A guest without one costs nothing: its machine says when somebody opens the port,
 * and only then is anything asked.
 */
export class GuestAgents {
  readonly #options: GuestAgentsOptions;
  readonly #attendances = new Map<string, Attendance>();

  constructor(options: GuestAgentsOptions) {
    this.#options = options;
  }

  /** Looks after the agent in this machine until the machine ends. */
  attend(podUID: string, machine: Machine): void {
    const { env, onNews } = this.#options;
    const { guestAgent: channel } = machine;
    if (!channel) return;
    this.#attendances.get(podUID)?.end();
    const attendance = new Attendance({ env, machine, channel, onNews: () => onNews(podUID) });
    this.#attendances.set(podUID, attendance);
    void attendance.run();
    void this.#endWith(podUID, machine, attendance);
  }

  /** What is known of the agent in the guest of a pod. */
  of(podUID: string): AgentSight {
    return this.#attendances.get(podUID)?.sight ?? 'unknown';
  }

  /** The guest of a pod stood still for a while, and does not know it: its clock is set as soon as its agent answers. */
  setClock(podUID: string): void {
    this.#attendances.get(podUID)?.setClock();
  }

  /** Looks after none any more. */
  letGo(): void {
    for (const attendance of this.#attendances.values()) attendance.end();
    this.#attendances.clear();
  }

  async #endWith(podUID: string, machine: Machine, attendance: Attendance): Promise<void> {
    await machine.ended;
    attendance.end();
    if (this.#attendances.get(podUID) === attendance) this.#attendances.delete(podUID);
  }
}

interface AttendanceOptions {
  readonly env: Env;
  readonly machine: Machine;
  readonly channel: GuestAgentChannel;
  readonly onNews: () => void;
}

/** Looks after one agent: it looks, and then waits for something to change, or for time to pass. */
class Attendance {
  sight: AgentSight = 'unknown';
  readonly #options: AttendanceOptions;
  readonly #over = new AbortController();
  #client: GuestAgentClient | undefined;
  #wake = new AbortController();
  #cameMs = 0;
  #restMs: number = REST_MS.min;
  /** When the agent may be asked next. */
  #askMs = 0;
  #isClockLate = false;

  constructor(options: AttendanceOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { channel, machine } = this.#options;
    const wake = (): void => this.#wake.abort();
    const stops = [
      channel.onChange(wake),
      machine.onEvent(({ kind }) => {
        if (kind === 'resumed') wake();
      }),
    ];
    this.#over.signal.addEventListener('abort', wake, { once: true });
    while (!this.#over.signal.aborted) {
      this.#wake = new AbortController();
      const waitMs = await this.#look();
      if (this.#over.signal.aborted) break;
      await this.#rest(waitMs);
    }
    for (const stop of stops) stop();
    this.#hangUp();
  }

  setClock(): void {
    this.#isClockLate = true;
    // It may have been left alone in another machine, for reasons of then.
    this.#askMs = 0;
    this.#wake.abort();
  }

  end(): void {
    this.#over.abort();
    this.#hangUp();
  }

  async #rest(waitMs: number | undefined): Promise<void> {
    const { signal } = this.#wake;
    if (waitMs !== undefined) return sleep(this.#options.env.clock, waitMs, signal);
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
  }

  /** Looks once; answers after how long to look again, even if nothing is heard until then. */
  async #look(): Promise<number | undefined> {
    const { machine, channel, env } = this.#options;
    try {
      if (!(await channel.isOpen())) {
        this.#hangUp();
        if (isAgent(this.sight)) this.#leaveAlone();
        this.#see('absent');
        return undefined;
      }
      // A guest that stands still answers nobody, and goes on where it was.
      if ((await machine.status()) !== 'running') return undefined;
    } catch (error) {
      env.log.debug('a machine does not tell of its agent', { error: errorMessage(error) });
      return RETRY_MS;
    }
    const untilMs = this.#askMs - env.clock.now();
    if (untilMs > 0) return untilMs;
    const sight = await this.#converse();
    if (isAgent(sight)) this.#askMs = env.clock.now() + ASK_EVERY_MS;
    else this.#leaveAlone();
    this.#see(sight);
    return Math.max(0, this.#askMs - env.clock.now());
  }

  async #converse(): Promise<AgentSight> {
    const { channel, env } = this.#options;
    try {
      if (!this.#client || this.#client.isClosed) this.#client = await GuestAgentClient.connect({ channel, ...env });
      const info = await askInfo(this.#client);
      if (this.#isClockLate && !(await this.#client.setTime())) env.log.info('the agent in a guest sets no clock');
      this.#isClockLate = false;
      return info;
    } catch (error) {
      env.log.debug('the agent in a guest does not answer', { error: errorMessage(error) });
      this.#hangUp();
      return 'absent';
    }
  }

  #hangUp(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  /** The agent has gone, or does not answer. */
  #leaveAlone(): void {
    const nowMs = this.#options.env.clock.now();
    const wasSteady = isAgent(this.sight) && nowMs - this.#cameMs >= STEADY_MS;
    this.#restMs = wasSteady ? REST_MS.min : Math.min(this.#restMs * 2, REST_MS.max);
    this.#askMs = nowMs + this.#restMs;
  }

  #see(sight: AgentSight): void {
    if (this.#over.signal.aborted || deepEqual(this.sight, sight)) return;
    if (!isAgent(this.sight)) this.#cameMs = this.#options.env.clock.now();
    this.sight = sight;
    this.#options.onNews();
  }
}

function isAgent(sight: AgentSight): sight is GuestAgentInfo {
  return typeof sight === 'object';
}
