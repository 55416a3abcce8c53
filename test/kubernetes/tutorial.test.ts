import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, it, vi } from 'vitest';
import { ON_KUBERNETES } from '../docs/played.ts';
import { Reader } from '../docs/reader.ts';
import { HERE } from '../support/godwit.ts';
import { ControlPlane } from '../support/kubernetes/control-plane.ts';
import { givenCluster } from '../support/kubernetes/foreign-cluster.ts';

/** Somebody who has a Kubernetes cluster, and does what the tutorial for it says, with real guests. */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 600_000 });

let directory: string;
let plane: ControlPlane | undefined;
let reader: Reader;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  const given = await givenCluster();
  if (given === undefined) plane = await ControlPlane.startIn(join(directory, 'control-plane'), HERE);
  reader = new Reader(given ?? plane?.kubeconfig ?? '');
});
afterAll(async () => {
  await reader.leave();
  await plane?.stop();
  rmSync(directory, { recursive: true, force: true });
});

it(ON_KUBERNETES, () => reader.follow(ON_KUBERNETES));
