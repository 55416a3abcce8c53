import { get, type Group, inNamespace, mergePatch, post, put, refused, silently, without } from '../request.ts';

const APPS = '/apis/apps/v1/namespaces/$ns';
const BATCH = '/apis/batch/v1/namespaces/$ns';
const template = {
  metadata: { labels: { app: 'x' } },
  spec: { containers: [{ name: 'main', image: 'example.org/main:1' }] },
};
const selector = { matchLabels: { app: 'x' } };
/** Controllers write to all of these. */
const spec = {
  view: ({
    spec,
    metadata: { generation, labels },
  }: {
    spec: object;
    metadata: { generation: number; labels?: object };
  }) => ({ spec, generation, labels }),
};
const named = (name: string, spec: object): object => ({ metadata: { name }, spec });
const job = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } };
const TABLE = {
  headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  view: ({ columnDefinitions }: { columnDefinitions: unknown }) => columnDefinitions,
};
const scale = {
  view: ({
    kind,
    apiVersion,
    spec,
    status: { selector },
  }: {
    kind: string;
    apiVersion: string;
    spec: object;
    status: { selector: string };
  }) => ({ kind, apiVersion, spec, selector }),
};

export const WORKLOADS: Group = {
  name: 'workloads',
  requests: inNamespace([
    post('makes a deployment', `${APPS}/deployments`, named('web', { replicas: 0, selector, template }), spec),
    refused(422).post('makes a deployment without a selector', `${APPS}/deployments`, named('bad', { template })),
    refused(422).post(
      'makes a deployment with a selector that does not match',
      `${APPS}/deployments`,
      named('bad', { selector: { matchLabels: { app: 'y' } }, template }),
    ),
    refused(422).post(
      'makes a deployment with a negative number',
      `${APPS}/deployments`,
      named('bad', { replicas: -1, selector, template }),
    ),
    refused(422).post(
      'makes a deployment with a bad strategy',
      `${APPS}/deployments`,
      named('bad', { selector, template, strategy: { type: 'Odd' } }),
    ),
    refused(422).post(
      'makes a deployment without surge',
      `${APPS}/deployments`,
      named('bad', { selector, template, strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } }),
    ),
    refused(422).post(
      'makes a deployment that never restarts',
      `${APPS}/deployments`,
      named('bad', { selector, template: job }),
    ),
    refused(422).post(
      'makes a deployment with a bad template',
      `${APPS}/deployments`,
      named('bad', { selector, template: { metadata: template.metadata, spec: { containers: [{ name: 'A_' }] } } }),
    ),
    get('its scale', `${APPS}/deployments/web/scale`, scale),
    put('scales it', `${APPS}/deployments/web/scale`, { metadata: { name: 'web' }, spec: { replicas: 2 } }, scale),
    mergePatch('scales it down', `${APPS}/deployments/web/scale`, { spec: { replicas: 0 } }, scale),
    refused(422).mergePatch('scales it below zero', `${APPS}/deployments/web/scale`, { spec: { replicas: -1 } }),
    refused(400).put('scales another', `${APPS}/deployments/web/scale`, {
      metadata: { name: 'other' },
      spec: { replicas: 2 },
    }),
    refused(400).put('scales with another kind', `${APPS}/deployments/web/scale`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
    }),
    refused(404).get('the scale of what is not there', `${APPS}/deployments/nothing/scale`),
    refused(422).mergePatch('changes its selector', `${APPS}/deployments/web`, {
      spec: { selector: { matchLabels: { app: 'z' } } },
    }),
    mergePatch(
      'changes its image',
      `${APPS}/deployments/web`,
      { spec: { template: { spec: { containers: [{ name: 'main', image: 'example.org/main:2' }] } } } },
      spec,
    ),
    get('deployments as a table', `${APPS}/deployments/web`, TABLE),
    post(
      'makes a stateful set',
      `${APPS}/statefulsets`,
      named('db', {
        replicas: 0,
        serviceName: 'db',
        selector,
        template,
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      }),
      spec,
    ),
    refused(422).mergePatch('changes the service of a stateful set', `${APPS}/statefulsets/db`, {
      spec: { serviceName: 'other' },
    }),
    refused(422).post(
      'makes a bad stateful set',
      `${APPS}/statefulsets`,
      named('bad', { selector, template, podManagementPolicy: 'Odd', updateStrategy: { type: 'Odd' } }),
    ),
    get('stateful sets as a table', `${APPS}/statefulsets/db`, TABLE),
    post(
      'makes a daemon set',
      `${APPS}/daemonsets`,
      named('each', {
        selector,
        template: { ...template, spec: { ...template.spec, nodeSelector: { none: 'such' } } },
      }),
      spec,
    ),
    refused(422).post(
      'makes a bad daemon set',
      `${APPS}/daemonsets`,
      named('bad', { selector, template, updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } }),
    ),
    get('daemon sets as a table', `${APPS}/daemonsets/each`, TABLE),
    post('makes a replica set', `${APPS}/replicasets`, named('set', { replicas: 0, selector, template }), spec),
    get('replica sets as a table', `${APPS}/replicasets/set`, TABLE),
    post('makes a revision', `${APPS}/controllerrevisions`, { metadata: { name: 'rev' }, revision: 1, data: { a: 1 } }),
    refused(422).mergePatch('changes a revision', `${APPS}/controllerrevisions/rev`, { data: { a: 2 } }),
    post('makes a job', `${BATCH}/jobs`, named('job', { suspend: true, template: job }), {
      view: ({ spec }) => ({ ...without(spec, 'selector', 'template'), template: spec.template.spec }),
    }),
    refused(422).post('makes a job that restarts', `${BATCH}/jobs`, named('bad', { template })),
    refused(422).post(
      'makes a bad job',
      `${BATCH}/jobs`,
      named('bad', { parallelism: -1, completions: -1, backoffLimit: -1, completionMode: 'Odd', template: job }),
    ),
    refused(422).mergePatch('changes the template of a job', `${BATCH}/jobs/job`, { spec: { completions: 5 } }),
    get('jobs as a table', `${BATCH}/jobs/job`, TABLE),
    post(
      'makes a cron job',
      `${BATCH}/cronjobs`,
      named('cron', { schedule: '0 0 1 1 *', suspend: true, jobTemplate: { spec: { template: job } } }),
      spec,
    ),
    refused(422).post(
      'makes a bad cron job',
      `${BATCH}/cronjobs`,
      named('bad', { schedule: 'now', concurrencyPolicy: 'Odd', jobTemplate: { spec: { template: job } } }),
    ),
    get('cron jobs as a table', `${BATCH}/cronjobs/cron`, TABLE),
    post(
      'makes a controller',
      '/api/v1/namespaces/$ns/replicationcontrollers',
      named('rc', { replicas: 0, selector: { app: 'x' }, template }),
      spec,
    ),
    post('makes a template', '/api/v1/namespaces/$ns/podtemplates', { metadata: { name: 'template' }, template }),
    silently(
      post(
        'makes a limit',
        '/api/v1/namespaces/$ns/limitranges',
        named('limit', {
          limits: [{ type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '500m' }, max: { cpu: '2' } }],
        }),
      ),
    ),
    refused(422).post(
      'makes a bad limit',
      '/api/v1/namespaces/$ns/limitranges',
      named('bad', { limits: [{ type: 'Container', max: { cpu: '1' }, min: { cpu: '2' }, default: { cpu: '5' } }] }),
    ),
    get('the limit', '/api/v1/namespaces/$ns/limitranges/limit', spec),
    post(
      'makes a pod within limits',
      '/api/v1/namespaces/$ns/pods?dryRun=All',
      named('limited', { ...template.spec, automountServiceAccountToken: false }),
      {
        until: ({ body }) => body.spec?.containers[0].resources?.limits !== undefined,
        view: ({ spec, metadata }) => [spec.containers[0].resources, metadata.annotations],
      },
    ),
    refused(403).post(
      'makes a pod beyond limits',
      '/api/v1/namespaces/$ns/pods',
      named('limited', { containers: [{ name: 'a', image: 'b', resources: { limits: { cpu: '3' } } }] }),
    ),
  ]),
};
