import { Counter, Gauge, type Registry } from 'prom-client';
import type { SyncErrorCode } from '../channel.ts';
import { encodeFrame } from './codec.ts';
import type { Frame } from './frame.ts';
import type { Link } from './link.ts';

/** What goes to and comes from other clusters, counted. Made once for a registry. */

const KINDS = ['hello', 'welcome', 'goodbye', 'update', 'gone', 'ack', 'refused', 'ping', 'bundle'] as const;
const DIRECTIONS = ['sent', 'received'] as const;
const ENDS = ['dialed', 'accepted'] as const;

type Direction = (typeof DIRECTIONS)[number];

const PREFIX = 'godwit_synchronization_';

export class StreamMetrics {
  readonly #messages: Counter<'direction' | 'kind'>;
  readonly #bytes: Counter<'direction' | 'kind'>;
  readonly #streams: Gauge<'end'>;
  readonly #opened: Counter<'end'>;
  readonly #failures: Counter<'code'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#messages = new Counter({
      name: `${PREFIX}messages_total`,
      help: 'Messages on streams with other clusters.',
      labelNames: ['direction', 'kind'],
      registers,
    });
    this.#bytes = new Counter({
      name: `${PREFIX}message_bytes_total`,
      help: 'Bytes of those messages, before gRPC, HTTP/2 and TLS wrap them.',
      labelNames: ['direction', 'kind'],
      registers,
    });
    this.#streams = new Gauge({
      name: `${PREFIX}streams`,
      help: 'Streams with other clusters that stand, by who dialed.',
      labelNames: ['end'],
      registers,
    });
    this.#opened = new Counter({
      name: `${PREFIX}streams_opened_total`,
      help: 'Streams with other clusters that have stood, by who dialed.',
      labelNames: ['end'],
      registers,
    });
    this.#failures = new Counter({
      name: `${PREFIX}dial_failures_total`,
      help: 'Dials of other clusters that came to nothing, by why.',
      labelNames: ['code'],
      registers,
    });
    for (const direction of DIRECTIONS)
      for (const kind of KINDS) {
        this.#messages.inc({ direction, kind }, 0);
        this.#bytes.inc({ direction, kind }, 0);
      }
    for (const end of ENDS) {
      this.#streams.set({ end }, 0);
      this.#opened.inc({ end }, 0);
    }
  }

  /** The link, with all that goes over it counted. */
  metered(link: Link): Link {
    return {
      peer: link.peer,
      validUntilMs: link.validUntilMs,
      check: () => link.check(),
      close: () => link.close(),
      send: (frame) => {
        this.#count('sent', frame);
        link.send(frame);
      },
      listen: (handlers) =>
        link.listen({
          frame: (frame) => {
            this.#count('received', frame);
            handlers.frame(frame);
          },
          ended: (error) => handlers.ended(error),
        }),
    };
  }

  /** A stream stands; answers how to say that it does not any more. */
  opened(isDialer: boolean): () => void {
    const end = isDialer ? 'dialed' : 'accepted';
    this.#streams.inc({ end });
    this.#opened.inc({ end });
    return () => this.#streams.dec({ end });
  }

  dialFailed(code: SyncErrorCode): void {
    this.#failures.inc({ code });
  }

  #count(direction: Direction, frame: Frame): void {
    const labels = { direction, kind: frame.kind };
    this.#messages.inc(labels);
    this.#bytes.inc(labels, encodeFrame(frame).length);
  }
}
