import { realEnv } from '../../src/env/real.ts';
import { Manager } from '../../src/kube/manager.ts';
import { ModelAgents } from './model-cluster.ts';

/**
 * A process of its own with the agents of many model nodes. `node model-agents.js SERVER AUTHORITY COUNT [PODS]`, with so
 * many pods on a node at most; ends with its parent.
 */

const [server = '', authority = '', count = '0', pods] = process.argv.slice(2);
/** Room for so many pods, where that is asked for. */
const share = pods === undefined ? {} : { share: { pods: Number(pods), cpus: 1000, memoryBytes: 2 ** 40 } };

const env = realEnv('error');
const names = Array.from({ length: Number(count) }, (_, index) => `model-${index}`);
const services = await new ModelAgents(env).of({ server, authority, names, ...share });
process.stdin.on('end', () => process.exit(0)).resume();
process.stdout.write('started\n');
await new Manager({ env }).add(...services).run(new AbortController().signal);
