import { describe, expect, it } from 'vitest';
import { created, createErrors, updateErrors } from '../test-kinds.ts';
import { cronJobDefinition } from './cron-job.ts';
import { jobDefinition } from './job.ts';

const container = { name: 'c', image: 'i', terminationMessagePolicy: 'File', imagePullPolicy: 'Always' };
const templateWith = (restartPolicy: string): object => ({ spec: { containers: [{ ...container }], restartPolicy } });
const fresh = (spec: object = {}): object => ({ spec: { template: templateWith('Never'), ...spec } });

describe('a Job', () => {
  it('selects its own pods by its UID, and is labelled like them', () => {
    const job = created(jobDefinition, fresh());
    const labels = {
      'batch.kubernetes.io/controller-uid': 'u',
      'batch.kubernetes.io/job-name': 'x',
      'controller-uid': 'u',
      'job-name': 'x',
    };
    expect(job).toMatchObject({
      metadata: { labels },
      spec: {
        selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } },
        template: { metadata: { labels } },
      },
    });
    expect(createErrors(jobDefinition, fresh())).toEqual([]);
  });

  it('is labelled like its pods unless it has labels of its own', () => {
    const template = { ...templateWith('Never'), metadata: { labels: { a: 'b' } } };
    const generated = { 'controller-uid': 'u', 'job-name': 'x' };
    expect(created(jobDefinition, fresh({ template })).metadata.labels).toMatchObject({ a: 'b', ...generated });
    const own = { metadata: { name: 'x', uid: 'u', labels: { c: 'd' } }, spec: { template } };
    expect(created(jobDefinition, own)).toMatchObject({
      metadata: { labels: { c: 'd' } },
      spec: { template: { metadata: { labels: { a: 'b', ...generated } } } },
    });
    expect(Object.keys(created(jobDefinition, own).metadata.labels ?? {})).toEqual(['c']);
  });

  it('leaves the selector alone when told so', () => {
    const spec = { manualSelector: true, selector: { matchLabels: { a: 'b' } } };
    const template = { ...templateWith('Never'), metadata: { labels: { a: 'b' } } };
    expect(created(jobDefinition, fresh({ ...spec, template }))).toMatchObject({ spec });
    expect(createErrors(jobDefinition, fresh({ ...spec, template }))).toEqual([]);
    expect(createErrors(jobDefinition, fresh({ manualSelector: true }))).toEqual(['spec.selector: Required value']);
    expect(createErrors(jobDefinition, fresh(spec))).toHaveLength(1);
  });

  it.each<[object, object]>([
    [{}, { parallelism: 1, completions: 1, backoffLimit: 6, completionMode: 'NonIndexed', suspend: false }],
    [{ completions: 3 }, { parallelism: 1, completions: 3 }],
    [{ podFailurePolicy: { rules: [] } }, { podReplacementPolicy: 'Failed' }],
    [{ completionMode: 'Indexed', backoffLimitPerIndex: 1 }, { backoffLimit: 2147483647 }],
  ])('with %j has the defaults %j', (spec, defaults) => {
    expect(created(jobDefinition, fresh(spec))).toMatchObject({ spec: defaults });
  });

  it('without completions stays so when it is parallel', () => {
    expect(created(jobDefinition, fresh({ parallelism: 2 })).spec).not.toHaveProperty('completions');
  });

  it.each<[object, string[]]>([
    [
      { template: templateWith('') },
      ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ],
    [
      { template: templateWith('OnFailure'), podFailurePolicy: { rules: [] } },
      [
        'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
      ],
    ],
    [{ parallelism: -1 }, ['spec.parallelism: Invalid value: -1: must be greater than or equal to 0']],
    [
      { completionMode: 'Indexed', parallelism: 1 },
      ['spec.completions: Required value: when completion mode is Indexed'],
    ],
    [{ backoffLimitPerIndex: 1 }, ['spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode']],
  ])('is refused with %j', (spec, errors) => {
    expect(createErrors(jobDefinition, fresh(spec))).toEqual(errors);
  });

  it('keeps what its pods depend on', () => {
    const old = created(jobDefinition, fresh()).spec as object;
    expect(updateErrors(jobDefinition, { spec: { ...old, parallelism: 5, suspend: true } }, fresh())).toEqual([]);
    expect(updateErrors(jobDefinition, { spec: { ...old, completions: 5 } }, fresh())).toEqual([
      'spec.completions: Invalid value: 5: field is immutable',
    ]);
    expect(updateErrors(jobDefinition, { spec: { ...old, selector: {} } }, fresh())).toHaveLength(1);
  });
});

describe('a CronJob', () => {
  const cron = (spec: object): object => ({ spec: { schedule: '*/5 * * * *', jobTemplate: fresh(), ...spec } });

  it.each(['*/5 * * * *', '0 0 1 JAN-DEC MON', '1,2,5-9/2 ? 31 12 sun-Sat', '5/10 * * * *', '@daily', '@every 1h30m'])(
    'runs at %s',
    (schedule) => {
      expect(createErrors(cronJobDefinition, cron({ schedule }))).toEqual([]);
    },
  );

  it.each<[string, string]>([
    ['* * *', 'expected exactly 5 fields, found 3: [* * *]'],
    ['* * * * * *', 'expected exactly 5 fields, found 6: [* * * * * *]'],
    ['$ * * * *', 'failed to parse int from $: strconv.Atoi: parsing "$": invalid syntax'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* 5-3 * * *', 'beginning of range (5) beyond end of range (3): 5-3'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['* * * Foo *', 'failed to parse int from Foo: strconv.Atoi: parsing "Foo": invalid syntax'],
    ['* * * * 7', 'end of range (7) above maximum (6): 7'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
    ['@often', 'unrecognized descriptor: @often'],
    ['TZ=UTC * * * *', 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'],
  ])('does not run at %s', (schedule, detail) => {
    const error = `spec.schedule: Invalid value: ${JSON.stringify(schedule)}: ${detail}`;
    expect(createErrors(cronJobDefinition, cron({ schedule }))).toEqual([error]);
  });

  it.each([
    ['Europe/Berlin', []],
    ['Nowhere/Foo', ['spec.timeZone: Invalid value: "Nowhere/Foo": unknown time zone Nowhere/Foo']],
    ['', ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']],
  ])('runs in the time zone %j', (timeZone, errors) => {
    expect(createErrors(cronJobDefinition, cron({ timeZone }))).toEqual(errors);
  });

  it('needs a schedule and a Job', () => {
    expect(createErrors(cronJobDefinition, {})).toEqual([
      'spec.schedule: Required value',
      'spec.jobTemplate: Required value',
    ]);
  });

  it('has a Job to make and a name short enough for it', () => {
    const jobTemplate = fresh({ template: templateWith('Always') });
    expect(createErrors(cronJobDefinition, cron({ jobTemplate }))).toEqual([
      'spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ]);
    const name = 'x'.repeat(53);
    expect(createErrors(cronJobDefinition, { ...cron({}), metadata: { name } })).toEqual([
      `metadata.name: Invalid value: "${name}": must be no more than 52 characters`,
    ]);
  });
});
