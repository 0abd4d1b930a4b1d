// The text of a number against ECMAScript, where doubles lose nothing, and against exact decimals elsewhere.

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { decimalOf } from '../../../test/exact-decimal.js'
import { property } from '../../../test/property.js'
import { canonicalJson } from './index.js'

describe('the text of a number', () => {
  const digit = fc.constantFrom(...'0001579')
  const digits = (maxLength: number) => fc.string({ unit: digit, minLength: 1, maxLength })
  const exponent = fc.tuple(fc.constantFrom('e', 'E', 'e+', 'E-', 'e-'), digits(3)).map((parts) => parts.join(''))
  const source = fc
    .tuple(fc.constantFrom('', '-'), digits(26), fc.option(digits(26)), fc.option(exponent))
    .map(([sign, integer, fraction, power]) => {
      const trimmed = integer.replace(/^0+(?=\d)/, '')
      return `${sign}${trimmed}${fraction === null ? '' : `.${fraction}`}${power ?? ''}`
    })

  property('denotes exactly the value of its source', [source], (number) => {
    expect(decimalOf(canonicalJson(number))).toBe(decimalOf(number))
  })

  property(
    'is that of RFC 8785 wherever that denotes the value',
    [fc.oneof(source, fc.double({ noNaN: true, noDefaultInfinity: true }).map(String))],
    (number) => {
      const rfc = String(Number(number) + 0)
      const isExact = rfc !== 'Infinity' && rfc !== '-Infinity' && decimalOf(rfc) === decimalOf(number)
      expect(canonicalJson(number) === rfc).toBe(isExact)
    },
  )

  const short = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.constantFrom('0', '1', '10', '100', '9', '99'),
      fc.constantFrom('', '.0', '.1', '.10', '.01', '.9'),
      fc.constantFrom('', 'e0', 'e1', 'e-1', 'e2', 'E+02', 'e-2'),
    )
    .map((parts) => parts.join(''))

  property(
    'is shared by two numbers exactly when they are equal',
    [fc.oneof(short, source), fc.oneof(short, source)],
    (one, other) => {
      expect(canonicalJson(one) === canonicalJson(other)).toBe(decimalOf(one) === decimalOf(other))
    },
  )
})
