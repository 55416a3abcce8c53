/**
 * Why a command has no result:
 * - `CommandFailed`: QEMU refused it, and says so with its class and description;
 * - `TimedOut`: no answer yet; QEMU may still carry it out unless it was never sent;
 * - `Overloaded`: too many commands wait already, this one was not sent;
 * - `Disconnected`: the connection ended, by either side;
 * - `Protocol`: QEMU, or whoever is there in its place, said something that QMP does not allow.
 */
export type QmpErrorCode = 'CommandFailed' | 'TimedOut' | 'Overloaded' | 'Disconnected' | 'Protocol';

/** Anything that goes wrong between us and a monitor. */
export class QmpError extends Error {
  readonly code: QmpErrorCode;
  /** QEMU's own error class, such as `GenericError` or `DeviceNotFound`, where QEMU answered. */
  readonly errorClass: string | undefined;
  /** QEMU's own words, without ours around them. */
  readonly description: string | undefined;
  /** True when QEMU may have carried out the command, or may still do so. */
  readonly mayTakeEffect: boolean;

  constructor(
    code: QmpErrorCode,
    message: string,
    more: { errorClass?: string; description?: string; mayTakeEffect?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.name = 'QmpError';
    this.code = code;
    this.errorClass = more.errorClass;
    this.description = more.description;
    this.mayTakeEffect = more.mayTakeEffect ?? false;
  }
}
