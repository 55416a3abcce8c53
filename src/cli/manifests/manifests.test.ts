import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InProcessApi } from '../../../test/support/in-process.ts';
import { fullName, usualName } from '../../../test/support/oci-archive.ts';
import { PART_OF_GODWIT } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { realClock } from '../../env/real.ts';
import { install } from '../../control/installation/install.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport } from '../../kube/in-process-transport.ts';
import { program } from '../program.ts';
import { VERSION } from '../version.ts';
import { wholeInstallation } from '../whole-installation.ts';
import { objectsIn, rendered } from './chart.fixture.ts';
import { chart, chartObjects, documents } from './chart.ts';
import { printManifests } from './manifests-command.ts';
import { manifests, usualSettings } from './manifests.ts';
import { PARTS } from './parts.ts';
import { onKubelets } from './settings.ts';

/** What is printed for admins, what the chart holds, and that an API server takes it. */

const CHART = new URL('../../../charts/godwit/', import.meta.url);
const DOCS = new URL('../../../docs/', import.meta.url);
const usual = manifests(usualSettings());
const nameOf = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

interface PodTemplate {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly tolerations: readonly object[];
        readonly securityContext?: object;
        readonly hostNetwork?: boolean;
        readonly topologySpreadConstraints?: readonly object[];
        readonly affinity?: object;
        readonly containers: readonly {
          readonly name: string;
          readonly lifecycle?: object;
          readonly image: string;
          readonly command: readonly string[];
          readonly args: readonly string[];
          readonly securityContext: object;
        }[];
      };
    };
  };
}

const podsOf = (kind: string, of = usual): PodTemplate['spec']['template']['spec'][] =>
  of.components.filter((each) => each.kind === kind).map((each) => (each as unknown as PodTemplate).spec.template.spec);

describe('manifests', () => {
  it('are as they are written down', async () => {
    const { crds: _, ...rest } = usual;
    await expect(documents(Object.values(rest).flat())).toMatchFileSnapshot('golden/manifests.yaml');
  });

  it('name every object once', () => {
    const names = Object.values(usual).flat().map(nameOf);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('label every object as ours', () => {
    const unlabelled = Object.values(usual)
      .flat()
      .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] !== 'godwit');
    expect(unlabelled.map(nameOf)).toEqual([]);
  });

  it('name the image as the script does that makes it, in no registry where somebody else could publish it', () => {
    const { image } = usualSettings();
    expect(image).toBe(usualName(VERSION));
    expect(fullName(image)).toMatch(/^localhost\//);
  });

  it('are printed whole or in parts, as YAML and as JSON', () => {
    const printed = (options: Parameters<typeof printManifests>[0]): string => {
      const lines: string[] = [];
      printManifests(options, (line) => lines.push(line));
      return lines.join('\n');
    };
    const all = PARTS.flatMap((part) => usual[part]).map(nameOf);
    expect(objectsIn(printed({ output: 'yaml' })).map(nameOf)).toEqual(all);
    const { items } = JSON.parse(printed({ output: 'json', only: ['components'], image: 'x/y:1' })) as {
      items: KubeObject[];
    };
    expect(items.map(nameOf)).toEqual(usual.components.map(nameOf));
    const images = items.flatMap(
      (each) => (each as Partial<PodTemplate>).spec?.template?.spec.containers.map(({ image }) => image) ?? [],
    );
    expect(images).toEqual(['x/y:1', 'x/y:1', 'x/y:1', 'x/y:1']);
  });

  it('give rights over nodes and hosts to agents alone', () => {
    for (const { containers, securityContext, hostNetwork } of podsOf('Deployment')) {
      expect(hostNetwork).toBeUndefined();
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const container of containers)
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });

  it('give rights to what is named, and to nothing that is not', () =>
    expect(usual.rights.filter(({ rules }) => JSON.stringify(rules)?.includes('"*"')).map(nameOf)).toEqual([]));

  it('have components run where all kubelets are those of control planes', () => {
    const pods = podsOf('Deployment');
    expect(pods).toHaveLength(3);
    for (const { tolerations } of pods)
      expect(tolerations).toContainEqual({
        key: 'node-role.kubernetes.io/control-plane',
        operator: 'Exists',
        effect: 'NoSchedule',
      });
  });

  it('have replicas spread over hosts, without regard to those of another version, and over zones', () => {
    for (const { topologySpreadConstraints, affinity, containers } of podsOf('Deployment')) {
      const labelSelector = { matchLabels: { 'kubevirt.io': containers[0]?.name } };
      expect(topologySpreadConstraints).toEqual([
        {
          maxSkew: 1,
          topologyKey: 'kubernetes.io/hostname',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector,
          matchLabelKeys: ['pod-template-hash'],
        },
      ]);
      const zones = { weight: 100, podAffinityTerm: { topologyKey: 'topology.kubernetes.io/zone', labelSelector } };
      expect(affinity).toMatchObject({
        podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [zones] },
      });
    }
  });

  it('have pods that any request may go to serve on for a moment when they end', () => {
    const sleeps = podsOf('Deployment').map(({ containers: [first] }) => [first?.name, first?.lifecycle]);
    expect(Object.fromEntries(sleeps)).toEqual({
      'virt-controller': undefined,
      'virt-api': { preStop: { sleep: { seconds: 5 } } },
      'virt-synchronization-controller': undefined,
    });
  });

  it('have no node kept by pods that do not serve', () => {
    const budgets = usual.components.filter(({ kind }) => kind === 'PodDisruptionBudget');
    expect(budgets).toHaveLength(3);
    for (const { spec } of budgets)
      expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  });

  it('have agents stay whatever taints their node has', () =>
    expect(podsOf('DaemonSet').map(({ tolerations }) => tolerations)).toEqual([[{ operator: 'Exists' }]]));

  it('have no agent replaced before the one that came last has stayed for a while', () =>
    expect(usual.components.find(({ kind }) => kind === 'DaemonSet')?.['spec']).toMatchObject({ minReadySeconds: 10 }));

  it('have agents of kubelets serve their nodes, and see the processes of pods', () => {
    const { components } = manifests(onKubelets(usualSettings()));
    const find = (name: string) =>
      components.find(({ kind, metadata }) => kind !== 'Service' && metadata.name === name);
    expect(find('virt-handler')?.['spec']).toMatchObject({
      updateStrategy: { type: 'RollingUpdate' },
      template: { spec: { hostPID: true, containers: [{ args: ['--kubelet', '--name', '$(NODE_NAME)'] }] } },
    });
    expect(find('virt-controller')?.['spec']).toMatchObject({
      template: { spec: { containers: [{ args: ['--kubelets'] }] } },
    });
  });

  it('start commands with options that these have', () => {
    const all = [usual, manifests(onKubelets(usualSettings()))].flatMap((each) =>
      podsOf('Deployment', each).concat(podsOf('DaemonSet', each)),
    );
    const wrong = all.flatMap(({ containers }) =>
      containers.flatMap(({ command: [, name, ...rest], args }) => {
        const words = [...rest, ...args];
        const known = program.commands.find((each) => each.name() === name)?.options.map(({ long }) => long);
        if (!known) return [name];
        return words.filter((word) => word.startsWith('--') && !known.includes(word));
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('leave it to the extension to say by what it is recognised', () =>
    expect(JSON.stringify(usual.registrations)).not.toContain('caBundle'));

  it('have the rights that `godwit up` installs', () => {
    const installed = new Map(usual.rights.map((each) => [nameOf(each), each]));
    for (const object of wholeInstallation().ours) {
      const labels = { ...PART_OF_GODWIT, ...object.metadata.labels };
      expect(installed.get(nameOf(object))).toEqual({ ...object, metadata: { ...object.metadata, labels } });
    }
  });
});

describe('the chart', () => {
  it('is in the repository as it would be made', async () => {
    for (const [path, text] of chart()) await expect(text).toMatchFileSnapshot(new URL(path, CHART).pathname);
  });

  it('holds the same objects as the manifests', () => {
    const files = chart();
    const read = (path: string): string => files.get(path) ?? '';
    const values = parse(read('values.yaml')) as object;
    expect(objectsIn(read('crds/crds.yaml'))).toEqual(JSON.parse(JSON.stringify(usual.crds)));
    for (const part of PARTS.filter((each) => each !== 'crds')) {
      const objects = JSON.parse(JSON.stringify(chartObjects(usual[part]))) as KubeObject[];
      expect(rendered(read(`templates/${part}.yaml`), values)).toEqual(objects);
    }
  });

  it('has a place for every value', () => {
    const files = chart();
    const templates = PARTS.map((part) => files.get(`templates/${part}.yaml`) ?? '');
    const used = new Set(templates.join('\n').match(/(?<=\.Values\.)[\w.]+/g));
    const { controllers, extension, synchronization, agent, ...plain } = usualSettings();
    const groups = Object.entries({ controllers, extension, synchronization, agent });
    const all = groups.flatMap(([group, value]) => Object.keys(value).map((key) => `${group}.${key}`));
    expect([...used].toSorted()).toEqual([...Object.keys(plain), ...all].toSorted());
  });

  it('tells whoever has installed it what its pages say', () => {
    const pages = ['kubernetes.md', 'tutorials/kubernetes.md'].map((page) => readFileSync(new URL(page, DOCS), 'utf8'));
    const [[label, value] = []] = Object.entries(usualSettings().agent.nodeSelector);
    const notes = (chart().get('templates/NOTES.txt') ?? '').replace(
      'NODE {{ $label }}={{ $value }}',
      `worker-1 ${label}=${value}`,
    );
    const commands = notes.split('\n').filter((line) => line.startsWith('  kubectl '));
    expect(commands).toHaveLength(7);
    expect(commands.filter((command) => !pages.join('').includes(`$ ${command.trim()}`))).toEqual([]);
  });

  it('keeps what nobody could make again', () => {
    const kept = Object.values(usual)
      .flatMap(chartObjects)
      .filter(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep');
    expect(kept.map(nameOf)).toEqual([
      'Secret kubevirt/godwit-synchronization-ca',
      'ConfigMap kubevirt/godwit-synchronization-bundle',
      'ConfigMap kubevirt/godwit-trust',
      'KubeVirt kubevirt/kubevirt',
    ]);
  });
});

describe('an API server', () => {
  let api: InProcessApi;

  beforeAll(async () => {
    api = await InProcessApi.start();
    const admin = { user: 'admin', groups: ['system:masters'] };
    const client = new Client(new InProcessTransport((request) => api.core.handle(request), admin), 'godwit');
    // What comes first has to be there: namespaces and kinds of what follows.
    await install(client, realClock, wholeInstallation(), new AbortController().signal);
  });
  afterAll(() => api.stop());

  it.each(PARTS.flatMap((part) => usual[part]).map((object) => [nameOf(object), object] as const))(
    'takes %s, and knows every field of it',
    async (_, object) => {
      const { apiVersion, kind, metadata } = object;
      const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
      const { resources } = (await api.request('GET', root)).expect(200).json as {
        resources: { kind: string; name: string }[];
      };
      const plural = resources.find((each) => each.kind === kind && !each.name.includes('/'))?.name;
      const place = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
      const query = 'dryRun=All&fieldManager=test&force=true&fieldValidation=Strict';
      const path = `${root}${place}/${plural}/${encodeURIComponent(metadata.name ?? '')}?${query}`;
      const headers = { 'content-type': 'application/apply-patch+yaml' };
      const { status, text } = await api.request('PATCH', path, { body: object, headers });
      expect(status, text).toBeLessThan(300);
    },
  );
});
