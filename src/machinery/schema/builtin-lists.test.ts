import { expect, it } from 'vitest';
import { list, listMap, message, str } from '../../api/schema.ts';
import { compileSchema } from './compile.ts';

const variable = message('Variable', '', { name: [1, str()] });
const schema = message('Holder', '', { env: [1, listMap(['name'], variable)], names: [2, list(str())] });
const object = { env: [{ name: 'A' }, { name: 'A' }] };

it('lets a built-in kind decide which lists must not repeat, and holds custom ones to their list types', () => {
  expect(compileSchema(schema, { builtin: true }).validate(object)).toEqual([]);
  expect(compileSchema(schema).validate(object)).toMatchObject([{ type: 'FieldValueDuplicate', field: 'env[1]' }]);
});
