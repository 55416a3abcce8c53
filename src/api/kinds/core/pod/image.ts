/** When an image is pulled unless somebody says otherwise: without tag or digest it is `latest`, pulled each time. */
export function pullPolicyFor(image: string): 'Always' | 'IfNotPresent' {
  const withoutDigest = image.split('@', 1)[0] ?? '';
  const tag = /:([^/:]*)$/.exec(withoutDigest)?.[1];
  const isLatest = tag === undefined ? !image.includes('@') && image !== '' : tag === 'latest';
  return isLatest ? 'Always' : 'IfNotPresent';
}
