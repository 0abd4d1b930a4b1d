import { describe, expect, it } from 'vitest'
import { skipParameters } from './parameters.js'

describe('skipParameters', () => {
  it.each([
    ['', 0],
    ['x', 0],
    [';a', 2],
    ['; a', 3],
    [';a;b;c', 6],
    [';a=1', 4],
    [';a=-1.5', 7],
    [';a=999999999999999', 18],
    [';a=123456789012.123', 19],
    [';a="x\\"y\\\\"', 11],
    [';a=tok:en/x', 11],
    [';a=:aGk=:', 9],
    [';a=?1', 5],
    [';a=@-1659578233', 15],
    [';a=%"f%c3%bc"', 13],
    [';a=1 ;b=2', 4], // a space may stand behind the semicolon only
    [';*a-b_c.d*=1', 12],
  ])('%s ends at %i', (text, end) => {
    expect(skipParameters(text, 0)).toBe(end)
  })

  it.each([
    ';',
    ';1',
    ';A',
    ';a=',
    ';a= 1',
    ';a=1234567890123456',
    ';a=1.2345',
    ';a=1.',
    ';a=1.2.3',
    ';a=%"%ff"',
    ';a=1234567890123.1',
    ';a="x',
    ';a="\u00e9"',
    ';a="\\n"',
    ';a=:aGk',
    ';a=?2',
    ';a=@1.5',
    ';a=%"%C3"',
    ';a=(1 2)',
  ])('%s is malformed', (text) => {
    expect(skipParameters(text, 0)).toBeUndefined()
  })
})
