import { choice, flag, type Infer, kept, listOf, needed, object, text } from '../typed-schema.ts';
import { disk, filesystem } from './disks.ts';
import { networkInterface } from './networks.ts';
import { cpu, memory, resources } from './processor-and-memory.ts';

/** The machine that a guest sees. What we keep and do not act on is opaque here; `kept-fields` warns of it. */

const kernelBoot = object('Boots a kernel of an image, not from a disk.', {
  kernelArgs: text("The kernel's command line."),
  container: object('The image.', {
    image: needed(text('Name of the image.')),
    kernelPath: text('Path of the kernel inside the image.'),
    initrdPath: text('Path of the initial RAM disk inside the image.'),
    imagePullPolicy: choice('When the image is fetched again.', ['Always', 'Never', 'IfNotPresent']),
    imagePullSecret: text('A Secret with credentials of the registry.'),
  }),
});

const firmware = object('What starts before the guest.', {
  uuid: text('The UUID that the guest sees; it should stay the same for as long as the VM is the same.'),
  serial: text('The serial number that the guest sees.'),
  bootloader: object('BIOS or EFI.', {
    bios: object('BIOS.', { useSerial: flag('Whether it writes to the serial console.') }),
    efi: object('EFI.', {
      secureBoot: flag('Whether only signed code is started; it is by default.'),
      persistent: flag('Whether its variables outlive the guest.'),
    }),
  }),
  kernelBoot,
  acpi: kept('Tables that the guest finds.'),
});

/** Which machine QEMU plays. */
export const machine = object('The machine that QEMU plays.', {
  type: text('Its type; with a version, it stays the same over updates of QEMU.'),
});

const tpm = object('A trusted platform module.', {
  enabled: flag('Whether there is one; there is by default.'),
  persistent: flag('Whether what it knows outlives the guest.'),
});

const input = object('A device for input.', {
  name: needed(text('Its name.')),
  type: needed(text('tablet.')),
  bus: text('virtio or usb.'),
});

/** As many as KubeVirt takes of each. */
const AT_MOST = { maxItems: 256 };

const devices = object('The devices of the guest.', {
  disks: listOf('Disks.', disk, AT_MOST),
  interfaces: listOf('Interfaces of networks.', networkInterface, AT_MOST),
  filesystems: listOf('Filesystems that are shared with the launcher.', filesystem),
  inputs: listOf('Devices for input.', input),
  autoattachSerialConsole: flag('Whether there is a serial console; there is by default.'),
  autoattachPodInterface: flag("Whether a guest without networks is on the pod's network; it is by default."),
  autoattachGraphicsDevice: flag('Whether there is a screen; there is by default.'),
  autoattachMemBalloon: flag('Whether memory can be taken back; it can by default.'),
  autoattachInputDevice: flag('Whether there is a tablet.'),
  autoattachVSOCK: flag('Whether there is a socket between guest and node.'),
  logSerialConsole: flag('Whether what the guest writes to its serial console is logged.'),
  rng: kept('A source of randomness.'),
  tpm,
  watchdog: kept('Acts when the guest hangs.'),
  blockMultiQueue: flag('Whether disks have one queue per processor.'),
  networkInterfaceMultiqueue: flag('Whether interfaces have one queue per processor.'),
  useVirtioTransitional: flag('Whether devices also speak the older virtio.'),
  disableHotplug: flag('Whether nothing can be plugged in while the guest runs.'),
  clientPassthrough: kept("USB devices of whoever looks at the guest's screen."),
  gpus: listOf('Graphics processors of the node.', kept('A graphics processor.')),
  hostDevices: listOf('Devices of the node.', kept('A device.')),
  sound: kept('A sound card.'),
  video: kept('The graphics card.'),
  panicDevices: listOf('Devices that say that the guest has crashed.', kept('A device.')),
  downwardMetrics: kept('Measurements of the node, through a serial port.'),
});

/** The machine of a guest. */
export const domain = object('The machine that the guest sees.', {
  devices: needed(devices),
  cpu,
  memory,
  resources,
  machine,
  firmware,
  clock: kept("The guest's clock and timers."),
  features: kept('What else the machine can do.'),
  chassis: kept('What the guest can read of its case.'),
  ioThreads: kept('Threads of disks.'),
  ioThreadsPolicy: text('How disks share threads: shared, auto or supplementalPool.'),
  launchSecurity: kept("Encryption of the guest's memory."),
  rebootPolicy: text('What happens when the guest reboots.'),
});

export type Domain = Infer<typeof domain>;
export type Devices = Infer<typeof devices>;
