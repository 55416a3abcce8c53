/** What the OpenAPI names of core/v1 types begin with. */
export const CORE = 'io.k8s.api.core.v1';
