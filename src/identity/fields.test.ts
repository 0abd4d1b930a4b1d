import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { canonicalJson } from '../kernel/index.js'
import { checkPointers, omitFields, onlyFields } from './fields.js'

describe('checkPointers', () => {
  it('brings pointers into one order, without repeats', () => {
    expect(checkPointers(['/b', '/a', '/b'])).toEqual(['/a', '/b'])
  })

  it.each([
    [[]],
    [['']],
    [['a']],
    [['/a~2']],
    [['/a~']],
    [['/\ud800']],
    [[7]],
    [['/a', undefined]],
    ['/a'],
    [Array(33).fill('/a')],
    [[`/${'a'.repeat(255)}`]],
  ])('refuses the bad rule %#', (pointers) => {
    expect(() => checkPointers(pointers as string[])).toThrow(
      expect.objectContaining({ code: 'FINGERPRINT_FIELDS_INVALID' }),
    )
  })
})

describe('omitFields and onlyFields', () => {
  const source = '{"a":{"b":[1,{"c":2}],"d":"x,]}\\\\\\""},"e~f/g":null,"z":9007199254740993}'

  it.each([
    [['/a'], '{"e~f/g":null,"z":9007199254740993}'],
    [['/a/b'], '{"a":{"d":"x,]}\\\\\\""},"e~f/g":null,"z":9007199254740993}'],
    [['/a/b/0'], '{"a":{"b":[{"c":2}],"d":"x,]}\\\\\\""},"e~f/g":null,"z":9007199254740993}'],
    [['/a/b/1/c', '/e~0f~1g'], '{"a":{"b":[1,{}],"d":"x,]}\\\\\\""},"z":9007199254740993}'],
    [['/nothing', '/a/d/0'], source],
    [['/a', '/e~0f~1g', '/z'], '{}'],
  ])('leaves out %j', (pointers, rest) => {
    expect(omitFields(source, pointers)).toBe(rest)
  })

  it('chooses, telling absent from null, with every digit', () => {
    expect(() => onlyFields(source, ['/nothing'])).toThrow(
      expect.objectContaining({ code: 'FINGERPRINT_FIELDS_INVALID' }),
    )
    expect(onlyFields(source, ['/a/b/1', '/e~0f~1g', '/nothing', '/z'])).toBe(
      '[["/a/b/1",[{"c":2}]],["/e~0f~1g",[null]],["/nothing",[]],["/z",[9007199254740993]]]',
    )
  })

  it('chooses a field and one inside it', () => {
    expect(onlyFields('{"a":{"b":1}}', ['/a', '/a/b'])).toBe('[["/a",[{"b":1}]],["/a/b",[1]]]')
  })

  it('meets every one of duplicate members, and __proto__ like any other', () => {
    expect(omitFields('{"a":1,"a":2,"b":3}', ['/a'])).toBe('{"b":3}')
    expect(onlyFields('{"a":1,"a":2}', ['/a'])).toBe('[["/a",[1,2]]]')
    expect(omitFields('{"__proto__":{"x":1},"b":3}', ['/__proto__/x'])).toBe('{"__proto__":{},"b":3}')
  })

  it('has nothing to leave out of a scalar', () => {
    for (const scalar of ['1', '"a"', 'null', '[]', '{}']) expect(omitFields(scalar, ['/a'])).toBe(scalar)
  })

  const member = fc.constantFrom('a', 'b', 'c"', 'd\\', '}', ',')
  const document = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>(1, -2.5, 'x', '"},[', '\\', null, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(member, tie('value'), { maxKeys: 4 }),
    ),
  })).value

  property(
    'agrees with deleting from parsed objects',
    [fc.dictionary(member, document), member, member],
    (value, outer, inner) => {
      const canonical = canonicalJson(JSON.stringify(value))
      const model = structuredClone(value) as Record<string, unknown>
      const child = model[outer]
      const chosen = Object.hasOwn(model, outer) ? canonicalJson(JSON.stringify(child)) : ''
      const only = () => onlyFields(canonical, [`/${outer}`])
      if (chosen === '') expect(only).toThrow('None of the chosen fields')
      else expect(only()).toBe(`[[${JSON.stringify(`/${outer}`)},[${chosen}]]]`)
      if (typeof child === 'object' && child !== null && !Array.isArray(child))
        delete (child as Record<string, unknown>)[inner]
      const pruned = omitFields(canonical, [`/${outer}/${inner}`])
      expect(pruned).toBe(canonicalJson(JSON.stringify(model)))
      delete model[outer]
      expect(omitFields(canonical, [`/${outer}`])).toBe(canonicalJson(JSON.stringify(model)))
    },
  )
})
