// A process that starts a machine, as an agent does, and is killed by the test at whatever moment.
import { realConnector } from '../../dist/env/real-connector.js';
import { realFiles } from '../../dist/env/real-files.js';
import { realProcesses } from '../../dist/env/real-processes.js';
import { realClock, realLogger } from '../../dist/env/real.js';
import { QemuHypervisor } from '../../dist/hypervisor/qemu/qemu-hypervisor.js';

const { options, spec, run } = JSON.parse(process.argv[2] ?? '');
const hypervisor = new QemuHypervisor({
  env: { clock: realClock, log: realLogger('silent') },
  connector: realConnector,
  processes: realProcesses,
  hostFiles: realFiles,
  ...options,
});
console.log('starting');
const machine = await hypervisor.start(spec, run);
await machine.continue();
console.log('running');
