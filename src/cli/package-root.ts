/** The folder of this package: the built program lies as deep in it as this file does. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
