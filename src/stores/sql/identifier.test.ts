import { describe, expect, it } from 'vitest'
import { checkPrefix, checkSchema, postgresDialect, quoteName, quoteTable, sqliteDialect } from './index.js'

const refused = expect.objectContaining({ code: 'ARGUMENT_INVALID' })

describe('names', () => {
  it('are quoted so that nothing in them counts', () => {
    expect(quoteName('a"b; drop table c')).toBe('"a""b; drop table c"')
    expect(quoteTable('shop.orders', postgresDialect)).toBe('"shop"."orders"')
    expect(quoteTable('orders', postgresDialect)).toBe('"orders"')
  })

  it.each(['', 'a\0b', 'ä'.repeat(32), 7 as never])(
    'are refused where an engine would cut or misread them (%#)',
    (name) => {
      expect(() => quoteName(name)).toThrow(refused)
    },
  )

  it('of tables have one schema at most', () => {
    expect(() => quoteTable('a.b.c', postgresDialect)).toThrow(refused)
    expect(() => quoteTable('.b', postgresDialect)).toThrow(refused)
  })

  it('of tables are taken as they are where they come apart from their schema', () => {
    expect(quoteTable({ table: 'shop.orders' }, postgresDialect)).toBe('"shop.orders"')
    expect(quoteTable({ schema: 'a.b', table: 'c.d"e' }, postgresDialect)).toBe('"a.b"."c.d""e"')
    for (const table of [{ table: '' }, { schema: '', table: 'a' }, {}, null, 7]) {
      expect(() => quoteTable(table as never, postgresDialect)).toThrow(refused)
    }
  })

  it('begin with a prefix that needs no quoting', () => {
    expect(checkPrefix('reprise_')).toBe('reprise_')
    expect(checkPrefix('')).toBe('')
    for (const prefix of ['A', '1a', 'a-b', 'a b', 'x'.repeat(41), 'a"'])
      expect(() => checkPrefix(prefix)).toThrow(refused)
    for (const schema of ['', 'A', '1a', "a'b", 'x'.repeat(64)]) expect(() => checkSchema(schema)).toThrow(refused)
    expect(checkSchema('x'.repeat(63))).toHaveLength(63)
  })

  it('have placeholders by dialect', () => {
    expect([postgresDialect.placeholder(3), sqliteDialect.placeholder(3)]).toEqual(['$3', '?'])
  })
})
