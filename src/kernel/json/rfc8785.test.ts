// The published vectors of RFC 8785, and the ones among them where keeping all digits is a deliberate difference.

import { describe, expect, it } from 'vitest'
import { canonicalJson, canonicalJsonOf } from './index.js'

// Appendix B: the bits of a double, and its text.
const numberVectors: readonly (readonly [bits: string, text: string])[] = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
]

// Doubles of appendix B that are whole, written with all digits of their exact value. RFC 8785 reads these sources,
// goes through the double and prints its shortest digits, which denote another decimal value. Here the value stays.
const deliberateDifferences: readonly (readonly [source: string, rfc: string, ours: string])[] = [
  ['295147905179352825856', '295147905179352830000', '295147905179352825856'],
  ['99999999999999974834176', '9.999999999999997e+22', '9.9999999999999974834176e+22'],
  ['99999999999999991611392', '1e+23', '9.9999999999999991611392e+22'],
  ['100000000000000008388608', '1.0000000000000001e+23', '1.00000000000000008388608e+23'],
  ['999999999999999737856', '999999999999999700000', '999999999999999737856'],
  ['999999999999999868928', '999999999999999900000', '999999999999999868928'],
  // The number of the example in section 3.2.2.
  ['333333333.33333329', '333333333.3333333', '333333333.33333329'],
]

function doubleOf(bits: string): number {
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, BigInt(`0x${bits}`))
  return view.getFloat64(0)
}

describe('RFC 8785 appendix B', () => {
  it.each(numberVectors)('prints the double %s as %s', (bits, text) => {
    expect(canonicalJsonOf(doubleOf(bits))).toBe(text)
  })

  it.each(numberVectors)('keeps the text of the double %s, %s, as it is', (_bits, text) => {
    expect(canonicalJson(text)).toBe(text)
  })

  it.each(['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000'])('refuses the double %s', (bits) => {
    expect(() => canonicalJsonOf(doubleOf(bits))).toThrow(expect.objectContaining({ code: 'JSON_VALUE_UNSUPPORTED' }))
  })

  it.each(deliberateDifferences)('keeps all digits of %s, where RFC 8785 prints %s', (source, rfc, ours) => {
    expect(String(Number(source))).toBe(rfc)
    expect(canonicalJson(source)).toBe(ours)
    expect(canonicalJson(source)).not.toBe(canonicalJson(rfc))
  })
})

describe('RFC 8785 section 3.2', () => {
  const source = String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`

  it('serialises the example, but for the one number that would lose a digit', () => {
    const rfc = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
    expect(canonicalJson(source)).toBe(rfc.replace('333333333.3333333', '333333333.33333329'))
    expect(canonicalJsonOf(JSON.parse(source))).toBe(rfc)
    expect(canonicalJson(source.replace('333333333.33333329', '333333333.3333333'))).toBe(rfc)
  })

  it('gives the bytes of section 3.2.4', () => {
    const hexadecimal =
      '7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d'
    const bytes = new TextEncoder().encode(canonicalJsonOf(JSON.parse(source)))
    expect(Buffer.from(bytes).toString('hex')).toBe(hexadecimal)
  })

  it('sorts names by UTF-16 code units, not by code points or bytes', () => {
    const unsorted = String.raw`{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }`
    const expected = [
      ['\r', 'Carriage Return'],
      ['1', 'One'],
      ['\u0080', 'Control'],
      ['ö', 'Latin Small Letter O With Diaeresis'],
      ['€', 'Euro Sign'],
      ['😀', 'Emoji: Grinning Face'],
      ['\ufb33', 'Hebrew Letter Dalet With Dagesh'],
    ]
    const members = expected.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
    expect(canonicalJson(unsorted)).toBe(`{${members.join(',')}}`)
    expect(canonicalJsonOf(JSON.parse(unsorted))).toBe(`{${members.join(',')}}`)
  })
})
