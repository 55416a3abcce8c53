import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { MigrationDecision } from './decision.ts';
import type { MigrationFacts } from './facts.ts';
import { decideSameGuest } from './same-guest.ts';
import { decideSource } from './source-half.ts';
import { decideTarget } from './target-half.ts';
import { decideWithin } from './within-cluster.ts';

/**
 * What becomes of a migration, from what is known of it. There is one machine for all of them: a pair of halves goes the
 * same way as a migration within the cluster, in which one object is both, with a phase before it in which the halves find
 * each other. Where both halves are of the very same guest, the source's goes that way, and the target's follows.
 */
export function decide(facts: MigrationFacts): MigrationDecision {
  const { migration, pair } = facts;
  if (isFinalMigration(migration)) return { phase: migration.status?.phase ?? '' };
  const role = migrationRole(migration.spec);
  if (role === 'local' || !pair) return decideWithin(facts);
  if (pair.isSameGuest) return decideSameGuest(facts, role, pair);
  switch (role) {
    case 'source':
      return decideSource(facts, pair);
    case 'target':
      return decideTarget(facts, pair);
    default:
      return unreachable(role);
  }
}
