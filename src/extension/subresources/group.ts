/** The aggregated API: what can be done with machines and guests besides reading and writing them. */

export const SUBRESOURCE_GROUP = 'subresources.kubevirt.io';
/** The first is the one to use; the other is for tools that still ask for it. */
export const SUBRESOURCE_VERSIONS = ['v1', 'v1alpha3'] as const;

/** What there is of a resource, and by which verb of RBAC it is asked for. docs/api.md is made of this. */
export interface Subresource {
  readonly resource: 'virtualmachines' | 'virtualmachineinstances';
  readonly subresource: string;
  readonly method: 'GET' | 'PUT';
  /** What it does, in a sentence. */
  readonly description: string;
  /** What each field of its body says, besides `dryRun`. */
  readonly body?: { readonly [field: string]: string };
  /** What each parameter of its query says. */
  readonly query?: { readonly [parameter: string]: string };
}

const EVACUATE_CANCEL = {
  subresource: 'evacuate/cancel',
  method: 'PUT',
  description:
    'Takes back that the guest has to leave its node, with the migration that has not begun. 400 while the node has the drain taint, 409 where the pod is terminating.',
  body: { evacuationNodeName: 'the node that it is marked for; 409 where it is marked for another one' },
} as const;

export const SUBRESOURCES: readonly Subresource[] = [
  {
    resource: 'virtualmachines',
    subresource: 'start',
    method: 'PUT',
    description: 'Starts the machine. 409 where its run strategy leaves that to nobody, or it runs.',
    body: { paused: 'whether the guest is held before its first instruction' },
  },
  {
    resource: 'virtualmachines',
    subresource: 'stop',
    method: 'PUT',
    description: 'Stops the machine. 409 where it does not run.',
    body: { gracePeriod: "seconds that the guest has to shut down; the guest's own by default" },
  },
  {
    resource: 'virtualmachines',
    subresource: 'restart',
    method: 'PUT',
    description: 'Stops the guest and starts a new one.',
    body: { gracePeriodSeconds: '0 ends the guest at once; nothing else is taken' },
  },
  {
    resource: 'virtualmachines',
    subresource: 'migrate',
    method: 'PUT',
    description:
      'Makes a migration, in the class `user-triggered` for those who may use it. 409 where the machine does not run; what a webhook refuses keeps its code and words.',
    body: { addedNodeSelector: 'labels that the target node must have, besides those that the guest asks for' },
  },
  { resource: 'virtualmachines', ...EVACUATE_CANCEL },
  {
    resource: 'virtualmachines',
    subresource: 'reclaim',
    method: 'PUT',
    description:
      'Brings a guest back that went to another namespace or cluster which is gone for good; or says which copy counts of one that is here, and that nobody else can decide. Answers what becomes of it as `message`.',
    body: {
      fenced: 'must be true: you have made sure that nothing of the guest runs at the other side, or but where you say',
      keep: 'of a guest that is here: the node where it runs, and goes on',
      afresh: 'of a guest that is here: it runs nowhere, and starts anew',
    },
  },
  {
    resource: 'virtualmachines',
    subresource: 'migrationpolicy',
    method: 'GET',
    description:
      'Answers which policy would hold if the machine moved now, why, and where each option comes from (kind `MigrationPolicyExplanation`).',
  },
  {
    resource: 'virtualmachineinstances',
    subresource: 'pause',
    method: 'PUT',
    description: 'Holds the guest. 409 where it does not run, or is held.',
  },
  {
    resource: 'virtualmachineinstances',
    subresource: 'unpause',
    method: 'PUT',
    description: 'Lets a guest go on that is held. 409 where it is not.',
  },
  { resource: 'virtualmachineinstances', ...EVACUATE_CANCEL },
  {
    resource: 'virtualmachineinstances',
    subresource: 'softreboot',
    method: 'PUT',
    description: 'Presses the power button so that the guest boots anew. 409 where it is held.',
  },
  {
    resource: 'virtualmachineinstances',
    subresource: 'reset',
    method: 'PUT',
    description: 'Resets the machine at once, as the reset button does.',
  },
  {
    resource: 'virtualmachineinstances',
    subresource: 'console',
    method: 'GET',
    description: 'The serial console, as a WebSocket of binary messages.',
  },
  {
    resource: 'virtualmachineinstances',
    subresource: 'log',
    method: 'GET',
    description: 'What the serial port has said, wherever the guest was, as text.',
    query: {
      follow: '`true` goes on until the guest ends, from node to node',
      tailLines: 'lines from the end',
      limitBytes: 'bytes at most',
    },
  },
  {
    resource: 'virtualmachineinstances',
    subresource: 'guestosinfo',
    method: 'GET',
    description: "Answers what the guest's own agent says of it. 409 where none is connected.",
  },
];

/** The verb that a role has to allow. */
export function verbOf({ method }: Pick<Subresource, 'method'>): 'get' | 'update' {
  return method === 'GET' ? 'get' : 'update';
}
