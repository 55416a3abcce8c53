// A reporter of Vitest's that writes each file's result the moment it is known, so that a run which is cut short still says what it
// has shown, and what not.
import { appendFileSync } from 'node:fs';

const path = process.env.GODWIT_TEST_PROGRESS;
const write = (entry) => appendFileSync(path, `${JSON.stringify(entry)}\n`);

export default class TestProgress {
  onTestRunStart(specifications) {
    for (const { moduleId, project } of specifications)
      write({ file: moduleId, project: project.name, state: 'queued' });
  }

  onTestModuleEnd(module) {
    const tests = [...module.children.allTests()].map((test) => test.result().state);
    const count = (state) => tests.filter((other) => other === state).length;
    const counts = { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
    write({ file: module.moduleId, project: module.project.name, state: module.ok() ? 'passed' : 'failed', ...counts });
  }

  onTestRunEnd(_modules, errors) {
    // Outside of tests, but where it is known in whose process.
    write({ ended: true, errors: errors.map((error) => error.VITEST_TEST_PATH ?? '') });
  }
}
