import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { KUBEVIRT_CRDS } from '../../src/api/kubevirt/crds.ts';
import { virtualMachineInstanceWarnings, virtualMachineWarnings } from '../../src/api/kubevirt/kept-fields.ts';
import { virtualMachineErrors, virtualMachineInstanceErrors } from '../../src/api/kubevirt/validation.ts';
import type { VirtualMachineInstanceSpec } from '../../src/api/kubevirt/virtual-machine-instance-spec.ts';
import type { VirtualMachineSpec } from '../../src/api/kubevirt/virtual-machine.ts';
import { type KubeObject, parseApiVersion } from '../../src/api/meta.ts';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { InProcessApi } from '../support/in-process.ts';
import { makeNamespace } from '../support/objects.ts';

/** The manifests of `examples/`, before anything runs: they are what KubeVirt takes, and say nothing that we pass over. */

const directory = fileURLToPath(new URL('../../examples', import.meta.url));
const files = readdirSync(directory).filter((name) => name.endsWith('.yaml'));
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

function objectsIn(file: string): KubeObject[] {
  return parseAllDocuments(readFileSync(join(directory, file), 'utf8')).map((each) => each.toJS() as KubeObject);
}

const all = files.flatMap((file) =>
  objectsIn(file).map((object) => [`${file}: ${object.kind} ${object.metadata.name}`, object, file] as const),
);
/** What a machine that waits for a guest needs. */
const CONFIGURATION = { developerConfiguration: { featureGates: ['DecentralizedLiveMigration'] } };

let api: InProcessApi;
/** Each file is tried in one of its own. */
const namespaces = new Map<string, string>();
beforeAll(async () => {
  api = await InProcessApi.start();
  for (const file of files) namespaces.set(file, await makeNamespace(api));
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } };
  (await api.request('POST', '/api/v1/namespaces', { body })).expect(201);
  for (const crd of KUBEVIRT_CRDS) (await api.request('POST', CRDS, { body: crd })).expect(201);
  await eventually(async () => (await api.request('GET', '/apis/kubevirt.io/v1')).expect(200));
});
afterAll(() => api.stop());

function pathOf({ apiVersion, kind, metadata }: KubeObject, file: string): string {
  const crd = KUBEVIRT_CRDS.find((each) => (each.spec as Anything).names.kind === kind);
  const { names, scope = 'Namespaced' } = (crd?.spec ?? {}) as Anything;
  const { group, version } = parseApiVersion(apiVersion);
  const place = scope === 'Cluster' ? '' : `/namespaces/${metadata.namespace ?? namespaces.get(file)}`;
  return `${group === '' ? '/api' : `/apis/${group}`}/${version}${place}/${names?.plural ?? `${kind.toLowerCase()}s`}`;
}

describe('the manifests of the examples', () => {
  it('are there', () => expect(files).toEqual(expect.arrayContaining(['vm.yaml', 'vmi.yaml'])));

  it.each(files)('%s says what it shows', (file) => {
    expect(readFileSync(join(directory, file), 'utf8')).toMatch(/^# [A-Z]/);
  });

  it.each(all)('%s is taken as it is, in the current namespace', async (_, object, file) => {
    // The cluster's configuration alone has its place.
    expect(object.metadata.namespace).toBe(object.kind === 'KubeVirt' ? 'kubevirt' : undefined);
    const path = pathOf(object, file);
    const answer = await eventually(async () =>
      (await api.request('POST', `${path}?fieldValidation=Strict`, { body: object })).expect(201),
    );
    expect(answer.warnings).toEqual([]);
    const { spec } = (await api.request('GET', `${path}/${answer.json.metadata.name}`)).expect(200).json;
    if (object.spec) expect(spec).toMatchObject(object.spec);
  });

  it.each(all.filter(([, { kind }]) => kind === 'VirtualMachine'))(
    '%s asks for nothing that is ignored',
    (_, object) => {
      const spec = object.spec as unknown as VirtualMachineSpec;
      expect(virtualMachineErrors(spec, CONFIGURATION)).toEqual([]);
      expect(virtualMachineWarnings(spec)).toEqual([]);
    },
  );

  it.each(all.filter(([, { kind }]) => kind === 'VirtualMachineInstance'))(
    '%s asks for nothing that is ignored',
    (_, object) => {
      const spec = object.spec as unknown as VirtualMachineInstanceSpec;
      expect(virtualMachineInstanceErrors(spec)).toEqual([]);
      expect(virtualMachineInstanceWarnings(spec)).toEqual([]);
    },
  );

  it('vm.yaml is one machine that can move: shared storage, its own network, and asked to', () => {
    const [claim, machine] = objectsIn('vm.yaml') as [Anything, Anything];
    expect(claim.spec).toMatchObject({ storageClassName: 'shared', accessModes: ['ReadWriteMany'] });
    expect(machine.spec.template.spec).toMatchObject({
      evictionStrategy: 'LiveMigrate',
      volumes: [{ persistentVolumeClaim: { claimName: claim.metadata.name } }, {}],
    });
  });
});
