import { describe, expect, it } from 'vitest'
import { falseBytes, goneBytes, oddBytes } from '../../../test/odd-bytes.js'
import { isRepriseError, type RepriseError } from '../errors.js'
import { canonicalJson, type JsonLimits } from './index.js'

const bytes = (text: string) => new TextEncoder().encode(text)

function refusal(source: string | Uint8Array, limits?: JsonLimits): RepriseError {
  try {
    canonicalJson(source, limits)
  } catch (error) {
    if (isRepriseError(error)) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('canonical text', () => {
  it.each([
    [' { "b" : [ 1 , 2 ] ,\r\n\t"a" : { } , "c" : [ ] } ', '{"a":{},"b":[1,2],"c":[]}'],
    [
      '{"b":{"d":1,"c":[{"f":1,"e":{"h":2,"g":3}},4]},"a":"x"}',
      '{"a":"x","b":{"c":[{"e":{"g":3,"h":2},"f":1},4],"d":1}}',
    ],
    ['[{"b":1,"a":2},{"a":1},{"d":{"z":1,"y":2},"c":3}]', '[{"a":2,"b":1},{"a":1},{"c":3,"d":{"y":2,"z":1}}]'],
    ['{"a":1,"":2,"aa":3,"A":4}', '{"":2,"A":4,"a":1,"aa":3}'],
    ['{"b,":1,"a{":2}', '{"a{":2,"b,":1}'],
    ['null', 'null'],
    ['true', 'true'],
    [' false ', 'false'],
    ['"\\u007f\u007f\\/\\u002f"', '"\u007f\u007f//"'],
    ['"\\b\\t\\n\\f\\r\\u0008\\u0009\\u000A\\u000c\\u000D"', '"\\b\\t\\n\\f\\r\\b\\t\\n\\f\\r"'],
    ['"\\u0000\\u001F\\u000B"', '"\\u0000\\u001f\\u000b"'],
    ['"\\"\\u0022\\\\\\u005C"', '"\\"\\"\\\\\\\\"'],
    ['"\\uD83D\\uDE00\\u20AC\\u00e9\\u07ff\\u0800\\uffff\\udbff\\udfff"', '"😀€é\u07ff\u0800\uffff\u{10ffff}"'],
    ['"\u2028\ufeff"', '"\u2028\ufeff"'],
  ])('of %j is %j', (source, expected) => {
    expect(canonicalJson(source)).toBe(expected)
    expect(canonicalJson(bytes(source))).toBe(expected)
  })

  it.each(oddBytes('{"b":1,"a":2}'))('of %s', (_name, source) => {
    expect(canonicalJson(source)).toBe('{"a":2,"b":1}')
    expect(refusal(source, { maxBytes: 12 }).code).toBe('JSON_TOO_LARGE')
  })

  it('keeps duplicate members, in source order among themselves', () => {
    expect(canonicalJson('{"a":1,"a":2}')).toBe('{"a":1,"a":2}')
    expect(canonicalJson('{"a":2,"a":1}')).toBe('{"a":2,"a":1}')
    expect(canonicalJson('{"b":0,"a":2,"\\u0061":1,"b":9,"a":2}')).toBe('{"a":2,"a":1,"a":2,"b":0,"b":9}')
  })

  it('keeps many duplicate members in source order', () => {
    const text = (names: readonly string[]) =>
      `{${names.flatMap((name) => Array.from({ length: 100 }, (_, index) => `"${name}":${index}`)).join(',')}}`
    expect(canonicalJson(text(['b', 'c', 'a']))).toBe(text(['a', 'b', 'c']))
  })

  it('keeps __proto__ like any name', () => {
    expect(canonicalJson('{"b":1,"__proto__":{"y":1,"x":2},"__proto__":3}')).toBe(
      '{"__proto__":{"x":2,"y":1},"__proto__":3,"b":1}',
    )
  })

  it('sorts names with escapes by what the escapes stand for', () => {
    const names = [
      '\u0001',
      '\n',
      '\u001f',
      ' ',
      '!',
      '"',
      '#',
      '[',
      '\\',
      '\\u0001',
      '\\\\',
      '\\n',
      ']',
      'a',
      'é',
      '\ud83d\ude00',
      '\ue000',
    ]
    const shuffled = [...names].sort((a, b) => (a < b ? 1 : -1))
    const text = (list: string[]) => `{${list.map((name) => `${JSON.stringify(name)}:0`).join(',')}}`
    expect(canonicalJson(text(shuffled))).toBe(text([...names].sort()))
    expect(canonicalJson(text(shuffled.map((name) => `x${name}`)))).toBe(
      text([...names].sort().map((name) => `x${name}`)),
    )
  })

  it('sorts objects of many members', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `m${(index * 7_919) % 1_000}`)
    const text = (list: string[]) => `{${list.map((name) => `"${name}":{"b":1,"a":"${name}"}`).join(',')}}`
    const expected = text([...names].sort()).replaceAll(/"b":1,("a":"m\d+")/g, '$1,"b":1')
    expect(canonicalJson(text(names))).toBe(expected)
  })
})

describe('numbers', () => {
  it.each([
    ['0', ['0', '-0', '0.0', '-0.00', '0e0', '0E+5', '-0e-5', '0e999999999999999999', '0.000e-99999999999999999999']],
    ['100', ['100', '100.0', '1e2', '1E+2', '1000e-1', '0.1e3', '1.00e00002']],
    ['0.1', ['0.1', '0.10', '1e-1', '10E-2', '0.01e1']],
    ['-1.5', ['-1.5', '-1.50', '-15e-1', '-0.15e1']],
    ['9007199254740992', ['9007199254740992', '9007199254740992.0', '9.007199254740992e15']],
    ['9007199254740993', ['9007199254740993', '9007199254740993.000', '90071992547409930e-1']],
    ['1e+400', ['1e400', '10e399', '0.1E401']],
    ['1e-400', ['1e-400', '0.1e-399', '10e-401']],
    ['0.000001', ['0.000001', '1e-6', '0.0000010']],
    ['1e-7', ['0.0000001', '1e-7', '0.00000010', '10e-8']],
    ['1.25e-7', ['0.000000125', '12.5e-8', '0.00000012500']],
    ['0.00000125', ['0.00000125', '1.25e-6']],
    ['100000000000000000000', ['1e20', '100000000000000000000', '100000000000000000000.0']],
    ['123456789012345678901', ['123456789012345678901', '1.23456789012345678901e20']],
    ['123456789012345678901.5', ['123456789012345678901.5', '123456789012345678901.50', '1234567890123456789015e-1']],
    ['1e+21', ['1e21', '1000000000000000000000', '1000000000000000000000.000']],
    ['1.234567890123456789012e+21', ['1234567890123456789012', '1234567890123456789012.0']],
    ['1.2345678901234567890123e+21', ['1234567890123456789012.3']],
    ['1e+999999999999999', ['1e999999999999999', '10e999999999999998', '0.001e1000000000000002']],
    ['1e-999999999999999', ['1e-999999999999999', '1e-000999999999999999', '1000e-1000000000000002']],
    ['12', ['0.00000000000000000000000000000000000012e38', '12000000000000000000000000000000000000e-36']],
  ])('have the text %s for each spelling', (expected, spellings) => {
    for (const spelling of spellings) {
      expect(canonicalJson(spelling)).toBe(expected)
      expect(canonicalJson(`[ ${spelling} ]`)).toBe(`[${expected}]`)
    }
  })

  it('refuses exponents that cannot be normalised, whatever the spelling', () => {
    for (const source of [
      '1e1000000000000000',
      '10e999999999999999',
      '1e-1000000000000000',
      '0.1e-999999999999999',
      '1e99999999999999999999999',
      '-1e-99999999999999999999',
    ]) {
      const error = refusal(`[0, ${source}]`)
      expect([error.code, error.details]).toEqual(['JSON_NUMBER_RANGE', { offset: 4 }])
    }
  })

  it('grows the text where a number is longer in canonical form, and never truncates what follows', () => {
    // Larger than the memory that is kept between calls, so that there is no room to spare.
    const source = `[${Array.from({ length: 100_000 }, () => '1e20').join(',')},"${'x'.repeat(1_000)}"]`
    expect(canonicalJson(source) === source.replaceAll('1e20', '100000000000000000000')).toBe(true)
  })
})

describe('refusals', () => {
  it.each([
    ['', 0],
    [' \n', 2],
    ['\ufeff1', 0],
    ['1\ufeff', 1],
    ['01', 1],
    ['-', 1],
    ['-a', 1],
    ['+1', 0],
    ['.5', 0],
    ['1.', 2],
    ['1.e5', 2],
    ['1e', 2],
    ['1e+', 3],
    ['0x10', 1],
    ['NaN', 0],
    ['Infinity', 0],
    ['nul', 3],
    ['nulll', 4],
    ['True', 0],
    ['[1,]', 3],
    ['[,1]', 1],
    ['[1 2]', 3],
    ['[1', 2],
    ['[1}', 2],
    ['{"a":1]', 6],
    ['{"a":1,}', 7],
    ['{a:1}', 1],
    ['{"a"}', 4],
    ['{"a" 1}', 5],
    ["'a'", 0],
    ['"a', 2],
    ['"a\nb"', 2],
    ['"\u0000"', 1],
    ['\u0000', 0],
    ['"\\x41"', 2],
    ['"\\', 2],
    ['"\\u12"', 5],
    ['"\\u12', 5],
    ['"\\u123g"', 6],
    ['1 1', 2],
    ['1//', 1],
    ['\u00a01', 0],
    ['"é😀" x', 6],
  ])('JSON_SYNTAX for %j at %i', (source, offset) => {
    expect(() => JSON.parse(source)).toThrow(SyntaxError)
    const error = refusal(source)
    expect([error.code, error.details]).toEqual(['JSON_SYNTAX', { offset }])
    const ofBytes = refusal(bytes(source))
    expect([ofBytes.code, ofBytes.details]).toEqual(['JSON_SYNTAX', { offset: bytes(source.slice(0, offset)).length }])
  })

  it.each([
    ['"\\ud800"', 1],
    ['"ab\\uDC00"', 3],
    ['"\\ud800\\u0041"', 1],
    ['"\\ud800\\ud800\\udc00"', 1],
    ['"\\ud800\\n"', 1],
    ['"\ud800"', 1],
    ['"\udc00\ud800"', 1],
    ['{"😀\udfff":1}', 4],
    ['"\\ud83d\ude00"', 1],
    ['"\ud83d\\ude00"', 1],
    ['1 \ud800', 2],
  ])('JSON_LONE_SURROGATE for %j at %i', (source, offset) => {
    const error = refusal(source)
    expect([error.code, error.details]).toEqual(['JSON_LONE_SURROGATE', { offset }])
  })

  it('reports the first fault of a text', () => {
    expect(refusal('x "\ud800"').code).toBe('JSON_SYNTAX')
    expect(refusal('"\ud800" x').code).toBe('JSON_LONE_SURROGATE')
    expect(refusal('[[["\ud800"]]]', { maxDepth: 2 }).code).toBe('JSON_TOO_DEEP')
    expect(refusal(Uint8Array.of(0x78, 0xff)).code).toBe('JSON_SYNTAX')
  })

  it.each([
    ['a stray continuation byte', [0x80]],
    ['a missing continuation byte', [0xc3]],
    ['a wrong continuation byte', [0xc3, 0x41]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an overlong form of three bytes', [0xe0, 0x9f, 0xbf]],
    ['an overlong form of four bytes', [0xf0, 0x8f, 0xbf, 0xbf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a value past U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a lead byte of five', [0xf8, 0x88, 0x80, 0x80, 0x80]],
    ['a sequence cut after two bytes', [0xe2, 0x82]],
    ['a sequence cut after three bytes', [0xf0, 0x9f, 0x98]],
    ['0xff', [0xff]],
  ])('JSON_ENCODING for %s', (_name, sequence) => {
    const inString = refusal(Uint8Array.of(0x22, 0x61, ...sequence, 0x22))
    expect([inString.code, inString.details]).toEqual(['JSON_ENCODING', { offset: 2 }])
    const outside = refusal(Uint8Array.of(0x20, ...sequence))
    expect([outside.code, outside.details]).toEqual(['JSON_ENCODING', { offset: 1 }])
    const cut = refusal(Uint8Array.of(0x22, ...sequence))
    expect(cut.code).toBe('JSON_ENCODING')
  })

  it('ARGUMENT_INVALID for a source or limits of another kind', () => {
    for (const source of [
      undefined,
      null,
      1,
      {},
      new Uint16Array(1),
      new ArrayBuffer(1),
      new DataView(new ArrayBuffer(1)),
    ]) {
      expect(refusal(source as unknown as string).code).toBe('ARGUMENT_INVALID')
    }
    for (const limits of [
      { maxBytes: -1 },
      { maxBytes: 1.5 },
      { maxBytes: Number.NaN },
      { maxBytes: 67_108_865 },
      { maxDepth: 1_001 },
      { maxDepth: -1 },
      { maxDepth: '5' as unknown as number },
      null as unknown as JsonLimits,
      5 as unknown as JsonLimits,
    ]) {
      expect(refusal('1', limits).code).toBe('ARGUMENT_INVALID')
    }
  })

  it.each([...goneBytes(), ...falseBytes()])('ARGUMENT_INVALID for %s', (_name, source) => {
    expect(refusal(source).code).toBe('ARGUMENT_INVALID')
  })

  it('never repeat the source', () => {
    for (const source of [
      '{"sesame":sesame}',
      '"sesame\\q"',
      '"sesame\ud800"',
      '[[["sesame"]]]',
      '"sesame sesame sesame"',
      'sesame',
      '1e12345678901234567',
    ]) {
      const error = refusal(source, { maxBytes: 20, maxDepth: 2 })
      expect(`${error.message} ${JSON.stringify(error.details)}`).not.toMatch(/sesame|123456/)
    }
  })
})

describe('limits', () => {
  it('counts the bytes of UTF-8, not code units', () => {
    for (const [source, size] of [
      ['"abc"', 5],
      ['"é€😀"', 11],
      [' 1 ', 3],
    ] as const) {
      expect(canonicalJson(source, { maxBytes: size })).toBe(source.trim())
      expect(canonicalJson(bytes(source), { maxBytes: size })).toBe(source.trim())
      for (const form of [source, bytes(source)]) {
        const error = refusal(form, { maxBytes: size - 1 })
        expect([error.code, error.details]).toEqual(['JSON_TOO_LARGE', { maxBytes: size - 1 }])
      }
    }
  })

  it('is 1 MiB and 128 levels by default', () => {
    expect(canonicalJson(`"${'a'.repeat(1_048_574)}"`)).toHaveLength(1_048_576)
    expect(refusal(`"${'a'.repeat(1_048_575)}"`).code).toBe('JSON_TOO_LARGE')
    expect(refusal(new Uint8Array(1_048_577)).code).toBe('JSON_TOO_LARGE')
    expect(canonicalJson(nested(128))).toBe(nested(128))
    const error = refusal(nested(129))
    expect([error.code, error.details]).toEqual(['JSON_TOO_DEEP', { maxDepth: 128, offset: 128 }])
  })

  it('leaves nothing behind, whatever the document before', () => {
    const outcome = (source: string) => {
      try {
        return canonicalJson(source)
      } catch (error) {
        return (error as RepriseError).code
      }
    }
    const documents = [
      '{"b":{"d":1,"c":2},"a":3}',
      '{"\\u0001":1,"\\u0000":[',
      '[1,2',
      '"\\u12',
      '{"b":1,"a":2}',
      '7',
      `"${'x'.repeat(300_000)}"`,
    ]
    const alone = documents.map(outcome)
    for (const [first, document] of documents.entries()) {
      for (const [second, other] of documents.entries()) {
        expect([outcome(document), outcome(other)]).toEqual([alone[first], alone[second]])
      }
    }
  })

  it('checks the size before the text', () => {
    expect(refusal('x'.repeat(20), { maxBytes: 10 }).code).toBe('JSON_TOO_LARGE')
  })

  it('allows depth 0: no array, no object', () => {
    expect(canonicalJson('1', { maxDepth: 0 })).toBe('1')
    expect(refusal('[]', { maxDepth: 0 }).code).toBe('JSON_TOO_DEEP')
    expect(refusal('{}', { maxDepth: 0 }).code).toBe('JSON_TOO_DEEP')
  })

  it('takes no stack: the greatest depth works where the stack is almost used up', () => {
    const deep = `${'{"b":['.repeat(500)}1${'],"a":0}'.repeat(500)}`
    const expected = `${'{"a":0,"b":['.repeat(500)}1${']}'.repeat(500)}`
    // The frame that fails first leaves the least room; some frame above it must succeed with the whole document.
    let result = ''
    let framesFailed = 0
    const descend = (): void => {
      try {
        descend()
      } catch (error) {
        if (!(error instanceof RangeError)) throw error
      }
      if (result !== '') return
      try {
        result = canonicalJson(deep, { maxDepth: 1_000 })
      } catch {
        // Mostly a RangeError; on Node 26 the decoder says TypeError when it runs out of stack.
        framesFailed += 1
      }
    }
    descend()
    expect(result).toBe(expected)
    expect(framesFailed).toBeLessThan(200)
  })
})

function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth)
}
