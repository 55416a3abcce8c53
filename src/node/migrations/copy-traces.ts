import { errorMessage } from '../../api/error-message.ts';
import type { CopyContext, CopyFailure, CredentialFiles } from './copy-options.ts';

/** What a copy must not leave behind. Nothing here rejects: the copy is over, whatever stays. */

export async function removeCredentials(
  { env }: Pick<CopyContext, 'env'>,
  credentials: CredentialFiles | undefined,
): Promise<void> {
  try {
    await credentials?.remove();
  } catch (error) {
    env.log.warn('the credentials of a copy could not be removed', { error: errorMessage(error) });
  }
}

/** The copies of disks of a copy that has failed, where there is a machine that may have some. */
export async function dropMirrors({ env, machine, disks }: CopyContext, { reason }: CopyFailure): Promise<void> {
  if (reason === 'MachineGone' || disks.length === 0) return;
  try {
    await machine.migration.dropMirrors();
  } catch (error) {
    // The next attempt does it before it begins.
    env.log.warn('the copies of disks could not be given up', { error: errorMessage(error) });
  }
}
