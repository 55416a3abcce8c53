import { describe, expect, it } from 'vitest';
import { paintFor, plain } from '../colours.ts';
import {
  ago,
  condition,
  guestOf,
  holderOf,
  ledgerOf,
  machineOf,
  migrationOf,
  nodeOf,
  NOW_MS,
  seenOf,
} from '../seen/seen.fixture.ts';
import { pictureOf } from './picture.ts';
import { pictureLines } from './picture-lines.ts';

const OPTIONS = { isWide: false, paint: plain, nowMs: NOW_MS };

const moving = {
  migrationUid: 'migration-web',
  progress: { percent: 40, summary: '40%, 12s left (8s to 30s)' },
};
const seen = seenOf({
  nodes: [
    nodeOf('node-1', true, { unschedulable: true }, [{ type: 'DrainBlocked', status: 'True' }]),
    nodeOf('node-2'),
    nodeOf('node-3', false),
  ],
  machines: [
    machineOf('web'),
    machineOf('db'),
    machineOf('old', { runStrategy: 'Halted' }, { printableStatus: 'Stopped' }),
    machineOf('big', {}, { printableStatus: 'ErrorUnschedulable' }),
  ],
  guests: [
    guestOf('web', 'node-1', { migrationState: moving }),
    guestOf('db', 'node-1', {
      evacuationNodeName: 'node-1',
      evacuationCauses: [{ cause: 'APIEviction', since: ago(3) }],
    }),
    guestOf('big', '', {
      phase: 'Scheduling',
      conditions: [condition('PodScheduled', 'False', 'Insufficient memory')],
    }),
    guestOf('alone', 'node-2'),
  ],
  migrations: [migrationOf('web', 'Running')],
  ledger: ledgerOf({}, holderOf('web', 'node-1', 'node-2')),
});

describe('the picture of a cluster', () => {
  it('shows nodes, what is on them, and what moves', () => {
    expect(pictureLines(pictureOf(seen), OPTIONS)).toEqual([
      '3 nodes (2 ready), 5 virtual machines (3 running), 1 moving, 0 waiting to move',
      '',
      '● node-1   Ready, cordoned, drain blocked   2 virtual machines',
      '    shop/db    Running   has to leave its node (APIEviction)',
      '    shop/web   Running   → node-2  ████████░░░░░░░░░░░░  40%, 12s left (8s to 30s)',
      '',
      '● node-2   Ready   1 virtual machine',
      '    shop/alone   Running',
      '    shop/web   ⇠ arriving',
      '',
      '● node-3   NotReady   0 virtual machines',
      '',
      'On no node',
      '    shop/big   ErrorUnschedulable   Insufficient memory',
      '    shop/old   Stopped',
    ]);
  });

  it('is of one namespace, if that is asked for', () => {
    const picture = pictureOf(seen, 'elsewhere');
    expect(picture.nodes.flatMap(({ virtualMachines }) => virtualMachines)).toEqual([]);
    expect([picture.elsewhere, picture.moving]).toEqual([[], 0]);
  });

  it('shows guests on nodes that one may not see, and says so', () => {
    const lines = pictureLines(pictureOf({ ...seen, nodes: [], denied: ['nodes'] }), OPTIONS);
    expect(lines).toContain('● node-2   NotReady, not to be seen   1 virtual machine');
    expect(lines).toContain('You may not look at nodes: there may be more than this.');
  });

  it('says why one waits, and where to read more', () => {
    const migrations = [migrationOf('web', 'Running'), migrationOf('db')];
    const ledger = ledgerOf({ perCluster: 1 }, holderOf('web', 'node-1', 'node-2'));
    const lines = pictureLines(pictureOf({ ...seen, migrations, ledger }), OPTIONS);
    expect(lines).toContain(
      '    shop/db    Running   waits to move: the one that may move at once in the cluster is under way',
    );
    expect(lines.at(-1)).toContain('godwit queue');
  });

  it('shows some of very many, and all where that is asked for', () => {
    const guests = Array.from({ length: 50 }, (_, index) => guestOf(`vm-${String(index).padStart(2, '0')}`, 'node-1'));
    const many = pictureOf(seenOf({ nodes: [nodeOf('node-1')], guests }));
    expect(pictureLines(many, OPTIONS).at(-1)).toBe("    ... and 30 more ('godwit status -o wide' shows all)");
    expect(pictureLines(many, { ...OPTIONS, isWide: true })).toHaveLength(53);
  });

  it('obeys nobody whose words it shows', () => {
    const guests = [
      guestOf('x', '', { phase: 'Scheduling', conditions: [condition('Synchronized', 'False', 'no\u001b[2J\nyes')] }),
    ];
    expect(pictureLines(pictureOf(seenOf({ guests })), OPTIONS).at(-1)).toBe('    shop/x   Scheduling   no [2J yes');
  });

  it('has colours where they are wanted', () => {
    const paint = paintFor({ isTTY: true }, {});
    expect(pictureLines(pictureOf(seen), { ...OPTIONS, paint }).join('\n')).toContain('\u001b[32m●\u001b[39m');
  });
});
