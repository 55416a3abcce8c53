import { controlServices } from '../control/control.ts';
import { CONTROLLER_IDENTITY } from '../control/installation/rights.ts';
import type { Program } from './component.ts';
import { managedProgram, type ManagedProgramOptions } from './managed-program.ts';

/** A process of Godwit's own controllers, with the rights that they are installed with. */
export function controlProgram(options: ManagedProgramOptions): Program {
  return managedProgram(options, ({ env, clientOf, metrics }) =>
    controlServices({ env, client: clientOf(CONTROLLER_IDENTITY), metrics, launcherImage: 'model/launcher' }),
  );
}
