// Runs in a network of its own. Each port on its loopback is a way out: to a socket of the same name in a directory,
// which is outside. `node relay.mjs DIRECTORY PORT…`; says `ready` once all of them are there.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

const [directory, ...ports] = process.argv.slice(2);
for (const port of ports) {
  const server = createServer((inner) => {
    const outer = connect(join(directory, port));
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ]) {
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  server.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
}
console.log('ready');
