/** The parts of an installation on Kubernetes that can be printed by themselves, in the order in which they are applied. */
export const PARTS = ['crds', 'rights', 'components', 'configuration', 'registrations'] as const;

export type Part = (typeof PARTS)[number];
