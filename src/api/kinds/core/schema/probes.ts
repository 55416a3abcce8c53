import { embedded, enumeration, int32, int64, intOrString, list, message, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of the checks and hooks that a kubelet runs against a container. */

const execAction = message(`${CORE}.ExecAction`, 'Runs a command in the container; exit status 0 is success.', {
  command: [1, list(str()), 'The command and its arguments, run without a shell.'],
});

const httpHeader = message(
  `${CORE}.HTTPHeader`,
  'A header of a request.',
  {
    name: [1, str(), 'Name of the header.'],
    value: [2, str(), 'Value of the header.'],
  },
  { required: ['name', 'value'] },
);

const httpGetAction = message(
  `${CORE}.HTTPGetAction`,
  'Sends an HTTP GET; a status from 200 to 399 is success.',
  {
    path: [1, str(), 'Path to ask for.'],
    port: [2, intOrString(), 'Number or name of the port.'],
    host: [3, str(), "Host to connect to; the pod's address by default."],
    scheme: [4, enumeration(['HTTP', 'HTTPS']), 'HTTP or HTTPS; HTTP by default.'],
    httpHeaders: [5, list(httpHeader), 'Headers to send.'],
  },
  { required: ['port'] },
);

const tcpSocketAction = message(
  `${CORE}.TCPSocketAction`,
  'Opens a TCP connection.',
  {
    port: [1, intOrString(), 'Number or name of the port.'],
    host: [2, str(), "Host to connect to; the pod's address by default."],
  },
  { required: ['port'] },
);

const grpcAction = message(
  `${CORE}.GRPCAction`,
  'Asks the gRPC health service.',
  {
    port: [1, int32(), 'Number of the port.'],
    service: [2, str({ pointer: true }), 'Name of the service to ask about.'],
  },
  { required: ['port'] },
);

const sleepAction = message(
  `${CORE}.SleepAction`,
  'Waits.',
  {
    seconds: [1, int64(), 'How long to wait.'],
  },
  { required: ['seconds'] },
);

export const probe = message(`${CORE}.Probe`, 'A check that is repeated against a container.', {
  ...embedded(1, {
    exec: [1, execAction, 'Runs a command.'],
    httpGet: [2, httpGetAction, 'Sends an HTTP GET.'],
    tcpSocket: [3, tcpSocketAction, 'Opens a TCP connection.'],
    grpc: [4, grpcAction, 'Asks the gRPC health service.'],
  }),
  initialDelaySeconds: [2, int32(), 'Seconds after the start of the container before the first check.'],
  timeoutSeconds: [3, int32(), 'Seconds after which a check has failed; 1 by default.'],
  periodSeconds: [4, int32(), 'Seconds between checks; 10 by default.'],
  successThreshold: [5, int32(), 'Successes in a row after a failure that count as success; 1 by default.'],
  failureThreshold: [6, int32(), 'Failures in a row that count as failure; 3 by default.'],
  terminationGracePeriodSeconds: [
    7,
    int64({ pointer: true }),
    "Grace period when this probe has the container stopped; the pod's by default.",
  ],
});

const lifecycleHandler = message(
  `${CORE}.LifecycleHandler`,
  "What to do on an event of a container's life; exactly one field is set.",
  {
    exec: [1, execAction, 'Runs a command.'],
    httpGet: [2, httpGetAction, 'Sends an HTTP GET.'],
    tcpSocket: [3, tcpSocketAction, 'Kept for compatibility; does nothing.'],
    sleep: [4, sleepAction, 'Waits.'],
  },
);

export const lifecycle = message(`${CORE}.Lifecycle`, "Hooks into a container's life.", {
  postStart: [1, lifecycleHandler, 'Runs right after the container was created.'],
  preStop: [2, lifecycleHandler, 'Runs before the container is stopped by request.'],
  stopSignal: [3, str({ pointer: true }), "The signal that stops the container, if not the image's."],
});
