import { expect, it } from 'vitest';
import type { FieldError } from '../../api/field-error.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { serviceUnavailable } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { configuredErrors } from './configured.ts';

const { signal } = new AbortController();
const CLOSED: FieldError = {
  type: 'FieldValueForbidden',
  field: 'spec.priority',
  message: 'Forbidden: the gate is off',
};
const open: KubeVirtConfiguration = { developerConfiguration: { featureGates: ['Gate'] } };

const errorsBy = ({ developerConfiguration }: KubeVirtConfiguration): FieldError[] =>
  developerConfiguration?.featureGates?.includes('Gate') ? [] : [CLOSED];

/** What is wrong by a configuration that was heard of, where the server gives this answer when it is asked. */
async function judge(heard: KubeVirtConfiguration, answer: () => object): Promise<FieldError[]> {
  const client = { list: async () => answer() } as unknown as Client;
  return configuredErrors({ client, configuration: () => heard }, signal, errorsBy);
}

const said = (configuration: KubeVirtConfiguration) => (): object => ({ items: [{ spec: { configuration } }] });
const nobody = (): never => {
  throw serviceUnavailable('the server is gone');
};

it.each([
  ['stands where the server says the same', {}, said({}), [CLOSED]],
  ['is taken back where a gate was opened since', {}, said(open), []],
  ['stands where the server has no configuration', {}, () => ({ items: [] }), [CLOSED]],
  ['stands where the server cannot be asked', {}, nobody, [CLOSED]],
  ['that is none is not asked about', open, nobody, []],
])('a refusal %s', async (_name, heard, answer, errors) => {
  expect(await judge(heard, answer)).toEqual(errors);
});
