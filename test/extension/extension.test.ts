import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { get } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/api/meta.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { ManualClock } from '../../src/env/test.ts';
import { registrations } from '../../src/extension/registrations.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';
import type { Answer } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { ExtensionScene } from '../support/extension-scene.ts';
import { freePort } from '../support/network.ts';

/** Webhooks and the aggregated API as users of an API server meet them. */

const NAMESPACE = 'shop';
const MACHINES = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines`;
const GUESTS = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances`;
const SUBRESOURCES = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}`;

const SECRET = '/api/v1/namespaces/kubevirt/secrets/kubevirt-virt-api-certs';

/** How often the extension looks after itself. */
const LOOK_MS = 60_000;

const GUEST = { domain: { devices: {}, memory: { guest: '64Mi' } } };

function machine(name: string, spec: object = { runStrategy: 'Manual' }): object {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: { template: { spec: GUEST }, ...spec },
  };
}

function guest(name: string, more: object = {}, spec: object = GUEST): object {
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name, ...more }, spec };
}

let scene: ExtensionScene;

beforeAll(async () => {
  scene = await ExtensionScene.start();
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  (await scene.request('POST', '/api/v1/namespaces', body)).expect(201);
});
afterAll(() => scene.stop());

function create(object: object, user?: string): Promise<Answer> {
  const { kind } = object as { kind: string };
  return scene.request('POST', kind === 'VirtualMachine' ? MACHINES : GUESTS, object, user);
}

async function setStatus(path: string, status: object): Promise<void> {
  (await scene.request('PATCH', `${path}/status`, { status })).expect(200);
}

describe('machines', () => {
  it('get what stays with them', async () => {
    const { json } = (
      await create(machine('complete', { runStrategy: 'Halted', instancetype: { name: 'later' } }))
    ).expect(201);
    const { architecture, domain } = json.spec.template.spec;
    expect(architecture).toBe('amd64');
    expect(domain.machine.type).toBe('q35');
    expect(domain.firmware.uuid).toMatch(/^[0-9a-f-]{36}$/);
    expect(json.spec.instancetype.kind).toBe('virtualmachineclusterinstancetype');
    const { metadata } = json;
    const replaced = { ...(machine('complete') as Record<string, unknown>), metadata };
    const again = (await scene.request('PUT', `${MACHINES}/complete`, replaced)).expect(200).json;
    expect(again.spec.template.spec.domain.firmware.uuid).toBe(domain.firmware.uuid);
  });

  it('are refused in the words that users know', async () => {
    const twice = await create(machine('twice', { running: true, runStrategy: 'Always' }));
    expect(twice.status).toBe(422);
    expect(twice.json.message).toContain(
      'admission webhook "virtualmachine-validator.kubevirt.io" denied the request: spec.running: Invalid value: true: Running and RunStrategy are mutually exclusive',
    );
    expect((await create(machine('misshapen', { runStrategy: 'Sometimes' }))).status).toBe(422);
    const { metadata } = (await create(machine('hollow'))).expect(201).json;
    const hollow = { ...(machine('hollow') as Record<string, unknown>), metadata, spec: undefined };
    expect((await scene.request('PUT', `${MACHINES}/hollow`, hollow)).expect(422).json.message).toContain(
      'spec: Required value',
    );
    expect((await create({ ...machine('empty'), spec: { runStrategy: 'Always' } })).json.message).toContain(
      'spec.template: Required value',
    );
  });

  it('are let pass with a word on what nobody acts on', async () => {
    const answer = (await create(machine('old', { running: false }))).expect(201);
    expect(answer.warnings).toEqual(['spec.running is deprecated, please use spec.runStrategy instead.']);
  });

  it('are refused where no cluster could run them, and let pass with a word where this one cannot', async () => {
    const scratch = { name: 'scratch' };
    const withDisk = (bus: string, capacity: string, domain: object = {}): object => ({
      domain: { ...GUEST.domain, devices: { disks: [{ ...scratch, disk: { bus } }] }, ...domain },
      volumes: [{ ...scratch, emptyDisk: { capacity } }],
    });
    const made = (name: string, spec: object): Promise<Answer> =>
      create(machine(name, { runStrategy: 'Halted', template: { spec } }));
    const wrong = await made('wrong', withDisk('virtio', '-1Gi', { machine: { type: 'toaster' } }));
    expect(wrong.expect(422).json.message).toMatch(
      /spec\.template\.spec\.volumes\[0\]\.emptyDisk\.capacity: .*must be positive.*domain\.machine\.type: Unsupported value: "toaster"/,
    );
    const garbage = await made('garbage', withDisk('virtio', 'much'));
    expect(garbage.expect(422).json.message).toContain('spec.template.spec.volumes[0].emptyDisk.capacity');
    const foreign = withDisk('scsi', '1Gi', { firmware: { bootloader: { efi: {} } } });
    expect((await made('foreign', foreign)).expect(201).warnings).toEqual([
      'spec.template.spec.domain.firmware.bootloader.efi keeps the guest from starting: guests start with a BIOS here; leave it out, or use bios',
      'spec.template.spec.domain.devices.disks[0].disk.bus keeps the guest from starting: there is no scsi here; use virtio or sata',
    ]);
  });
});

describe('guests', () => {
  it('are complete from the start, and kept until nobody runs them', async () => {
    const { json } = (await create(guest('complete'))).expect(201);
    expect(json.metadata.finalizers).toEqual(['foregroundDeleteVirtualMachine']);
    expect(json.spec.domain.resources.requests.memory).toBe('64Mi');
    expect(json.spec.terminationGracePeriodSeconds).toBe(30);
    expect(json.spec.networks).toEqual([{ name: 'default', pod: {} }]);
    expect(json.spec.domain.devices.interfaces).toEqual([{ name: 'default', masquerade: {} }]);
  });

  it('stay as they are', async () => {
    (await create(guest('fixed'))).expect(201);
    const changed = await scene.request('PATCH', `${GUESTS}/fixed`, { spec: { terminationGracePeriodSeconds: 5 } });
    expect(changed.status).toBe(422);
    expect(changed.json.message).toBe(
      'admission webhook "virtualmachineinstances-update-validator.kubevirt.io" denied the request: update of VMI object is restricted',
    );
    const label = { metadata: { labels: { 'kubevirt.io/nodeName': 'mine' } } };
    const labelled = await scene.request('PATCH', `${GUESTS}/fixed`, label);
    expect(labelled.json.message).toContain(
      'modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited',
    );
    (await scene.request('PATCH', `${GUESTS}/fixed`, { metadata: { labels: { color: 'green' } } })).expect(200);
  });

  it('do not say of themselves what components say', async () => {
    const answer = await create(guest('liar', { labels: { 'kubevirt.io/nodeName': 'n1' } }));
    expect(answer.json.message).toContain(
      'creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited',
    );
    expect((await create(guest('small', {}, { domain: { devices: {} } }))).json.message).toContain(
      'spec.domain.memory.guest: Required value',
    );
  });
});

describe('sizes and configuration', () => {
  it('are looked at', async () => {
    const path = `/apis/instancetype.kubevirt.io/v1beta1/namespaces/${NAMESPACE}/virtualmachineinstancetypes`;
    const type = (memory: object): object => ({
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineInstancetype',
      metadata: { name: 'small' },
      spec: { cpu: { guest: 1 }, memory },
    });
    const refused = await scene.request(
      'POST',
      path,
      type({ guest: '1Gi', overcommitPercent: 5, hugepages: { pageSize: '2Mi' } }),
    );
    expect(refused.json.message).toContain('should not be requested together.');
    (await scene.request('POST', path, type({ guest: '1Gi' }))).expect(201);
    const both = machine('both', {
      runStrategy: 'Halted',
      instancetype: { name: 'small', kind: 'VirtualMachineInstancetype' },
    });
    expect((await create(both)).json.message).toContain('conflicts with selected instance type');
  });

  it('warn of gates that nobody knows, and there is one configuration', async () => {
    const path = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts';
    const answer = await scene.request('PATCH', `${path}/kubevirt`, {
      spec: { configuration: { developerConfiguration: { featureGates: ['Teleportation'] } } },
    });
    expect(answer.expect(200).warnings).toEqual([
      'spec.configuration.developerConfiguration.featureGates[0]: unknown feature gate "Teleportation"',
    ]);
    const second = { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: { name: 'second' }, spec: {} };
    expect((await scene.request('POST', path, second)).json.message).toContain('KubeVirt is already created');
    const same = { ...second, metadata: { name: 'kubevirt' } };
    expect((await scene.request('POST', path, same)).json.reason).toBe('AlreadyExists');
  });
});

describe('the aggregated API', () => {
  it('is discovered', async () => {
    const group = await eventually(async () =>
      (await scene.request('GET', '/apis/subresources.kubevirt.io')).expect(200),
    );
    expect(group.json.preferredVersion.version).toBe('v1');
    const { json } = (await scene.request('GET', '/apis/subresources.kubevirt.io/v1')).expect(200);
    expect(json.resources.map(({ name }: { name: string }) => name)).toContain('virtualmachines/start');
    const version = (await scene.request('GET', '/apis/subresources.kubevirt.io/v1/version')).expect(200);
    expect(version.json.gitVersion).toBe('v1.2.3');
    (await scene.request('GET', '/apis/subresources.kubevirt.io/v1alpha3/healthz')).expect(200);
  });

  it('starts, stops and restarts by the run strategy', async () => {
    (await create(machine('power', { runStrategy: 'Halted' }))).expect(201);
    (await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/power/start`)).expect(202);
    expect((await scene.request('GET', `${MACHINES}/power`)).json.spec.runStrategy).toBe('Always');
    const again = await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/power/start`, {});
    expect(again.expect(409).json.message).toBe(
      'Operation cannot be fulfilled on virtualmachine.kubevirt.io "power": Always does not support manual start requests',
    );
    (await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/power/stop`)).expect(202);
    expect((await scene.request('GET', `${MACHINES}/power`)).json.spec.runStrategy).toBe('Halted');
    expect(
      (await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/power/stop`)).expect(409).json.message,
    ).toContain('VM is not running');
    expect((await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/none/stop`)).expect(404).json.message).toBe(
      'virtualmachine.kubevirt.io "none" not found',
    );
  });

  it('changes nothing where that is asked for, in whichever way, and refuses what it does not understand', async () => {
    (await create(machine('careful', { runStrategy: 'Halted' }))).expect(201);
    const start = (body: object, query = ''): Promise<Answer> =>
      scene.request('PUT', `${SUBRESOURCES}/virtualmachines/careful/start${query}`, body);
    (await start({ dryRun: ['All'], paused: true })).expect(202);
    (await start({}, '?dryRun=All')).expect(202);
    for (const dryRun of [['Some'], 'some', true]) (await start({ dryRun })).expect(400);
    expect((await start({}, '?dryRun=some')).expect(400).json.message).toBe(
      'dryRun: Unsupported value: "some": supported values: "All"',
    );
    const { spec, status } = (await scene.request('GET', `${MACHINES}/careful`)).json;
    expect(spec.runStrategy).toBe('Halted');
    expect(status?.stateChangeRequests).toBeUndefined();
    (await start({ paused: true })).expect(202);
    expect((await scene.request('GET', `${MACHINES}/careful`)).json.status.stateChangeRequests).toEqual([
      { action: 'Start', data: { paused: 'true' } },
    ]);
  });

  it('leaves requests for the controller, and a shorter time for the guest', async () => {
    const { json } = (await create(machine('manual'))).expect(201);
    const start = (): Promise<Answer> => scene.request('PUT', `${SUBRESOURCES}/virtualmachines/manual/start`);
    (await start()).expect(202);
    expect((await scene.request('GET', `${MACHINES}/manual`)).json.status.stateChangeRequests).toEqual([
      { action: 'Start' },
    ]);
    expect((await start()).expect(409).json.message).toContain('stop/start already underway');
    const owner = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      name: 'manual',
      uid: json.metadata.uid,
      controller: true,
    };
    const made = (await create(guest('manual', { ownerReferences: [owner] }))).expect(201).json;
    await setStatus(`${GUESTS}/manual`, { phase: 'Running' });
    expect((await start()).expect(409).json.message).toContain('VM is already running');
    await setStatus(`${MACHINES}/manual`, { stateChangeRequests: null });
    const stop = { gracePeriod: 0 };
    (await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/manual/stop`, { ...stop, dryRun: ['All'] })).expect(
      202,
    );
    expect((await scene.request('GET', `${MACHINES}/manual`)).json.status.stateChangeRequests).toBeUndefined();
    (await scene.request('PUT', `${SUBRESOURCES}/virtualmachines/manual/stop`, stop)).expect(202);
    expect((await scene.request('GET', `${MACHINES}/manual`)).json.status.stateChangeRequests).toEqual([
      { action: 'Stop', uid: made.metadata.uid },
    ]);
    expect((await scene.request('GET', `${GUESTS}/manual`)).json.spec.terminationGracePeriodSeconds).toBe(0);
  });

  it('asks whether users may', async () => {
    const path = `${SUBRESOURCES}/virtualmachines/power/start`;
    expect((await scene.request('PUT', path, undefined, 'jane')).expect(403).json.message).toContain(
      'User "jane" cannot update resource "virtualmachines/start" in API group "subresources.kubevirt.io" in the namespace "shop"',
    );
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'jane' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'jane' }],
    };
    (
      await scene.request('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings`, binding)
    ).expect(201);
    await eventually(async () => (await scene.request('PUT', path, undefined, 'jane')).expect(202));
    (await create(machine('hers'), 'jane')).expect(201);
  });

  it('says what cannot be done with a guest now', async () => {
    (await create(guest('idle'))).expect(201);
    expect(
      (await scene.request('PUT', `${SUBRESOURCES}/virtualmachineinstances/idle/pause`)).expect(409).json.message,
    ).toBe('Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "idle": VMI is not running');
    await setStatus(`${GUESTS}/idle`, { phase: 'Running', nodeName: 'gone' });
    expect(
      (await scene.request('PUT', `${SUBRESOURCES}/virtualmachineinstances/idle/unpause`)).expect(409).json.message,
    ).toContain('VMI is not paused');
    expect(
      (await scene.request('PUT', `${SUBRESOURCES}/virtualmachineinstances/idle/pause`)).expect(503).json.message,
    ).toBe('node gone is not there any more');
    (await scene.request('GET', `${SUBRESOURCES}/virtualmachineinstances/idle/console`)).expect(400);
    (await scene.request('PUT', `${SUBRESOURCES}/virtualmachineinstances/idle/teleport`)).expect(404);
    (await scene.request('GET', `${SUBRESOURCES}/virtualmachineinstances/idle/pause`)).expect(405);
  });
});

describe('nodes', () => {
  const status = (node: string, path: string, phase: string): Promise<Answer> =>
    scene.api.as({ commonName: `system:node:${node}`, organizations: ['system:nodes'] }).request('PATCH', path, {
      body: { status: { phase } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });

  it('may write of guests only what is theirs to say', async () => {
    (await create(guest('placed'))).expect(201);
    await setStatus(`${GUESTS}/placed`, { phase: 'Scheduled', nodeName: 'n1' });
    const other = await status('n2', `${GUESTS}/placed/status`, 'Failed');
    expect(other.expect(403).json.message).toBe(
      'admission webhook "node-restriction.godwit.dev" denied the request: node "n2" has nothing to do with this guest',
    );
    (await status('n1', `${GUESTS}/placed/status`, 'Failed')).expect(200);
    expect((await status('n1', `${GUESTS}/placed/status`, 'Running')).expect(403).json.message).toContain(
      'may not bring back a guest that has ended',
    );
  });
});

describe('the extension', () => {
  it('closes the door while it is away, except for what must go on', async () => {
    await scene.stopExtension();
    expect((await create(machine('unasked'))).status).toBe(500);
    (await scene.request('PATCH', `${GUESTS}/fixed`, { metadata: { annotations: { note: 'by a component' } } })).expect(
      200,
    );
    (await scene.request('PATCH', `${GUESTS}/fixed/status`, { status: { phase: 'Pending' } })).expect(200);
    (await scene.request('PATCH', `${MACHINES}/power`, { metadata: { finalizers: ['example.com/held'] } })).expect(200);
    (await scene.request('DELETE', `${MACHINES}/power`)).expect(200);
    (await scene.request('PATCH', `${MACHINES}/power`, { metadata: { finalizers: null } })).expect(200);
    expect((await scene.request('PATCH', `${MACHINES}/old`, { spec: { running: true } })).status).toBe(500);
    const squatter = createServer().listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    await scene.startExtension({ port: (squatter.address() as AddressInfo).port });
    squatter.close();
    (await create(machine('asked'))).expect(201);
  });

  it('is ready once API servers know of it', async () => {
    await scene.stopExtension();
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const allow = async ({ path }: { path: string }): Promise<void> => {
      if (path.includes('webhookconfigurations')) await held;
    };
    const port = await freePort();
    let notReady: () => string | undefined = () => expect.unreachable();
    const starting = scene.startExtension({ port, allow, readyUnless: (reason) => (notReady = reason) });
    const readiness = (): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        get(`https://127.0.0.1:${port}/readyz`, { rejectUnauthorized: false, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).once('error', reject);
      });
    await eventually(async () => expect(await readiness()).toBe(503));
    expect(notReady()).toBe('not registered yet');
    letGo();
    await starting;
    await eventually(async () => expect(await readiness()).toBe(200));
    expect(notReady()).toBeUndefined();
  });

  it('puts back what somebody changes of its registrations at the next look, and what they remove at the one after', async () => {
    const clock = new ManualClock(Date.now());
    await scene.stopExtension();
    await scene.startExtension({ clock });
    const removed = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/virt-api-mutator';
    const changed = '/apis/apiregistration.k8s.io/v1/apiservices/v1.subresources.kubevirt.io';
    (await scene.request('DELETE', removed)).expect(200);
    (await scene.request('PATCH', changed, { spec: { versionPriority: 99 } })).expect(200);
    clock.advance(LOOK_MS);
    // Which it looks at later than at the other.
    await eventually(async () => expect((await scene.request('GET', changed)).json.spec.versionPriority).toBe(15));
    (await scene.request('GET', removed)).expect(404);
    await eventually(async () => {
      clock.advance(LOOK_MS);
      (await scene.request('GET', removed)).expect(200);
    });
  });

  it('has API servers hear of another authority before it shows a certificate of it', async () => {
    await scene.stopExtension();
    const [clock, port] = [new ManualClock(Date.now()), await freePort()];
    await scene.startExtension({ clock, port });
    const shown = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256);
          socket.destroy();
        }).once('error', reject);
      });
    const before = await shown();
    const text = (encoded: string): string => Buffer.from(encoded, 'base64').toString();
    const known = (await scene.request('GET', SECRET)).expect(200).json.data;
    const authority = await createAuthority({ clock: realClock, random: realRandom }, 'another');
    const dnsNames = ['virt-api.kubevirt.svc', 'virt-api.kubevirt.svc.cluster.local'];
    const serving = { commonName: 'virt-api', dnsNames, ipAddresses: ['127.0.0.1'], usages: ['server'] } as const;
    const next = await issueIdentity(authority, { ...serving, validityMs: 365 * DAY_MS });
    const data = Object.entries({
      'ca.crt': authority.certificatePem,
      'ca.key': authority.keyPem,
      'ca-bundle.crt': authority.certificatePem + text(known['ca.crt']),
      'tls.crt': next.certificatePem,
      'tls.key': next.keyPem,
    }).map(([key, pem]) => [key, Buffer.from(pem).toString('base64')]);
    (await scene.request('PATCH', SECRET, { data: Object.fromEntries(data) })).expect(200);
    clock.advance(LOOK_MS);
    const registered = '/apis/apiregistration.k8s.io/v1/apiservices/v1.subresources.kubevirt.io';
    await eventually(async () => {
      const { caBundle } = (await scene.request('GET', registered)).expect(200).json.spec;
      expect(text(caBundle)).toContain(authority.certificatePem);
    });
    expect(await shown()).toBe(before);
    await eventually(async () => {
      clock.advance(LOOK_MS);
      expect(await shown()).toBe(new X509Certificate(next.certificatePem).fingerprint256);
    });
    (await create(machine('recognised'))).expect(201);
  });

  it('leaves it to whoever installs its Service to make its registrations, and makes them where nobody does', async () => {
    const reach = { servicePort: 443 };
    const installed = registrations({ reach: { kind: 'service', port: reach.servicePort } });
    const pathOf = ({ apiVersion, kind, metadata }: KubeObject): string =>
      `/apis/${apiVersion}/${kind.toLowerCase()}s/${metadata.name}`;
    const found = async (): Promise<number[]> =>
      Promise.all(installed.map(async (each) => (await scene.request('GET', pathOf(each))).status));
    const start = async (clock: ManualClock): Promise<number[]> => {
      await scene.stopExtension();
      for (const each of installed) (await scene.request('DELETE', pathOf(each))).expect(200);
      let looks = 0;
      const allow = async ({ path }: { path: string }): Promise<void> => {
        if (path.endsWith('virt-api-validator')) looks++;
      };
      void scene.launchExtension({ clock, reach, allow });
      await eventually(() => {
        // Little by little: on a busy machine a look takes long, and its patience is not to end meanwhile.
        clock.advance(100);
        expect(looks).toBeGreaterThan(2);
      });
      return found();
    };
    const awaited = new ManualClock(Date.now());
    expect(await start(awaited)).toEqual(installed.map(() => 404));
    for (const each of installed) (await scene.request('POST', pathOf(each).replace(/\/[^/]+$/, ''), each)).expect(201);
    await eventually(async () => {
      awaited.advance(1000);
      for (const each of installed)
        expect((await scene.request('GET', pathOf(each))).expect(200).text).toContain('"caBundle"');
    });
    const alone = new ManualClock(Date.now());
    expect(await start(alone)).toEqual(installed.map(() => 404));
    await eventually(async () => {
      alone.advance(LOOK_MS);
      expect(await found()).toEqual(installed.map(() => 200));
    });
  });
});
