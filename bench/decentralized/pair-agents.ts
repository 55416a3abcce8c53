import { realEnv } from '../../src/env/real.ts';
import { Manager } from '../../src/kube/manager.ts';
import { ModelAgents } from '../migration/model-cluster.ts';

/**
 * A process of its own with the agents of all model nodes of two clusters, which reach each other. `node pair-agents.js COUNT
 * SERVER AUTHORITY SERVER AUTHORITY`, with so many nodes in each; ends with its parent.
 */

const [count = '0', ...clusters] = process.argv.slice(2);
const env = realEnv('error');
const agents = new ModelAgents(env);
const manager = new Manager({ env });
for (const [index, prefix] of ['east', 'west'].entries()) {
  const [server = '', authority = ''] = clusters.slice(2 * index);
  const names = Array.from({ length: Number(count) }, (_, node) => `${prefix}-${node}`);
  manager.add(...(await agents.of({ server, authority, names })));
}
process.stdin.on('end', () => process.exit(0)).resume();
process.stdout.write('started\n');
await manager.run(new AbortController().signal);
