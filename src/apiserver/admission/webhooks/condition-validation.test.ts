import { describe, expect, it } from 'vitest';
import { builtinDefinitions } from '../../../api/kinds/builtins.ts';
import { withConditionValidation } from './condition-validation.ts';
import { validatingConfiguration, webhook } from './fake-transport.fixture.ts';

const definition = builtinDefinitions.find(({ kind }) => kind === 'ValidatingWebhookConfiguration');

function errorsOf(...expressions: string[]): string[] {
  if (!definition) throw new Error('webhook configurations are built in');
  const matchConditions = expressions.map((expression, index) => ({ name: `c${index}`, expression }));
  const object = validatingConfiguration('c', webhook('a.b'), webhook('c.d', { matchConditions }));
  const errors = withConditionValidation(definition).strategy?.validate?.(object) ?? [];
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

describe('match conditions', () => {
  it('are accepted where they compile', () => {
    expect(errorsOf('true', 'object.metadata.name != ""', 'request.userInfo.username', 'oldObject == null')).toEqual(
      [],
    );
  });

  it('are refused where they do not, or can never be true or false', () => {
    expect(errorsOf('object.x +', '1 + 1', 'unknown.x')).toEqual([
      expect.stringMatching(
        /^webhooks\[1\]\.matchConditions\[0\]\.expression: Invalid value: "object\.x \+": compilation failed: ERROR: <input>:1:11: Syntax error:/,
      ),
      'webhooks[1].matchConditions[1].expression: Invalid value: "1 + 1": must evaluate to bool but got int',
      expect.stringContaining("undeclared reference to 'unknown'"),
    ]);
  });
});
