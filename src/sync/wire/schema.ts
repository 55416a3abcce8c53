import { createFileRegistry, fromJson, type JsonValue, type Message } from '@bufbuild/protobuf';
import type { GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';

/**
 * The protocol as protobuf knows it, made when the program starts: what a `.proto` file would say, without a compiler.
 * Numbers, once published, never get another meaning.
 */

const PACKAGE = 'godwit.synchronization.v1';

type FieldType = 'uint32' | 'uint64' | 'string' | 'bytes' | 'Role' | 'Resume' | (typeof BODIES)[number][1];

interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly isRepeated?: true;
  /** The group of which only one field is set. */
  readonly oneOf?: string;
}

const BODIES = [
  ['hello', 'Hello'],
  ['welcome', 'Welcome'],
  ['goodbye', 'Goodbye'],
  ['update', 'Update'],
  ['gone', 'Gone'],
  ['ack', 'Ack'],
  ['refused', 'Refused'],
  ['ping', 'Ping'],
  ['bundle', 'Bundle'],
] as const;

const introduction: readonly Field[] = [
  { name: 'cluster_id', type: 'string' },
  { name: 'incarnation', type: 'string' },
  { name: 'resume', type: 'Resume' },
  { name: 'bundle', type: 'string' },
];

/** Fields are numbered in the order in which they are here, from 1. */
const MESSAGES: { readonly [name: string]: readonly Field[] } = {
  Frame: BODIES.map(([name, type]) => ({ name, type, oneOf: 'body' })),
  Resume: [
    { name: 'incarnation', type: 'string' },
    { name: 'seq', type: 'uint64' },
    { name: 'unanswered', type: 'uint64', isRepeated: true },
  ],
  Hello: [{ name: 'version_min', type: 'uint32' }, { name: 'version_max', type: 'uint32' }, ...introduction],
  Welcome: [{ name: 'version', type: 'uint32' }, ...introduction],
  Goodbye: [
    { name: 'code', type: 'string' },
    { name: 'message', type: 'string' },
  ],
  Update: [
    { name: 'seq', type: 'uint64' },
    { name: 'key', type: 'string' },
    { name: 'role', type: 'Role' },
    { name: 'snapshot', type: 'bytes', oneOf: 'content' },
    { name: 'delta', type: 'bytes', oneOf: 'content' },
  ],
  Gone: [
    { name: 'seq', type: 'uint64' },
    { name: 'key', type: 'string' },
    { name: 'role', type: 'Role' },
  ],
  Ack: [{ name: 'seqs', type: 'uint64', isRepeated: true }],
  Refused: [
    { name: 'seq', type: 'uint64' },
    { name: 'reason', type: 'string' },
    { name: 'message', type: 'string' },
  ],
  Ping: [],
  Bundle: [{ name: 'bundle', type: 'string' }],
};

export const ROLE_SOURCE = 1;
export const ROLE_TARGET = 2;

const roles: JsonValue = {
  name: 'Role',
  value: [
    { name: 'ROLE_UNSPECIFIED', number: 0 },
    { name: 'ROLE_SOURCE', number: ROLE_SOURCE },
    { name: 'ROLE_TARGET', number: ROLE_TARGET },
  ],
};

const converse: JsonValue = {
  name: 'Converse',
  inputType: `.${PACKAGE}.Frame`,
  outputType: `.${PACKAGE}.Frame`,
  clientStreaming: true,
  serverStreaming: true,
};

function typeOf(type: FieldType): { [name: string]: JsonValue } {
  if (/^[a-z]/.test(type)) return { type: `TYPE_${type.toUpperCase()}` };
  return { type: type === 'Role' ? 'TYPE_ENUM' : 'TYPE_MESSAGE', typeName: `.${PACKAGE}.${type}` };
}

function messageDescriptor([name, fields]: [string, readonly Field[]]): JsonValue {
  const groups = [...new Set(fields.flatMap(({ oneOf }) => oneOf ?? []))];
  return {
    name,
    oneofDecl: groups.map((group) => ({ name: group })),
    field: fields.map(({ name, type, isRepeated, oneOf }, index) => ({
      name,
      number: index + 1,
      label: isRepeated ? 'LABEL_REPEATED' : 'LABEL_OPTIONAL',
      ...typeOf(type),
      ...(oneOf === undefined ? {} : { oneofIndex: groups.indexOf(oneOf) }),
    })),
  };
}

const registry = createFileRegistry(
  fromJson(FileDescriptorProtoSchema, {
    name: 'godwit/synchronization/v1/synchronization.proto',
    package: PACKAGE,
    syntax: 'proto3',
    enumType: [roles],
    messageType: Object.entries(MESSAGES).map(messageDescriptor),
    service: [{ name: 'Synchronization', method: [converse] }],
  }),
  () => undefined,
);

export interface ResumeMessage {
  incarnation: string;
  seq: bigint;
  unanswered: bigint[];
}

export interface IntroductionMessage {
  clusterId: string;
  incarnation: string;
  resume?: ResumeMessage;
  bundle: string;
}

interface Numbered {
  seq: bigint;
  key: string;
  role: number;
}

type Content =
  | { case: 'snapshot'; value: Uint8Array }
  | { case: 'delta'; value: Uint8Array }
  | { case: undefined; value?: undefined };

export type FrameBody =
  | { case: 'hello'; value: IntroductionMessage & { versionMin: number; versionMax: number } }
  | { case: 'welcome'; value: IntroductionMessage & { version: number } }
  | { case: 'goodbye'; value: { code: string; message: string } }
  | { case: 'update'; value: Numbered & { content: Content } }
  | { case: 'gone'; value: Numbered }
  | { case: 'ack'; value: { seqs: bigint[] } }
  | { case: 'refused'; value: { seq: bigint; reason: string; message: string } }
  | { case: 'ping'; value: object }
  | { case: 'bundle'; value: { bundle: string } }
  | { case: undefined; value?: undefined };

export type FrameMessage = Message<`${typeof PACKAGE}.Frame`> & { body: FrameBody };

function found<T>(descriptor: T | undefined): T {
  if (descriptor === undefined) throw new Error('the protocol lacks a part of itself');
  return descriptor;
}

export const frameSchema = found(registry.getMessage(`${PACKAGE}.Frame`)) as GenMessage<FrameMessage>;

export const synchronizationService = found(registry.getService(`${PACKAGE}.Synchronization`)) as GenService<{
  converse: {
    methodKind: 'bidi_streaming';
    input: typeof frameSchema;
    output: typeof frameSchema;
  };
}>;
