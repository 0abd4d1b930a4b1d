import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { acceptedHeader, sequenceHeader, sequenceNumberOf } from './sequence-number.js'

const producers = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 255,
})
const counts = fc.integer({ min: 1, max: 1e15 - 1 })

describe('Reprise-Sequence', () => {
  property('gives back what was written', [producers, counts, counts], (producer, epoch, number) => {
    const at = { producer, epoch, number }
    expect(sequenceHeader.read(sequenceHeader.write(at))).toEqual(at)
    expect(sequenceHeader.read([sequenceHeader.write(at)])).toEqual(at)
  })

  it('takes spaces around and between its parts', () => {
    const at = { producer: 'shop-1', epoch: 7, number: 3 }
    expect(sequenceHeader.read(' "shop-1"; epoch=7; number=3 ')).toEqual(at)
  })

  it.each([undefined, null, []])('says that it is absent: %j', (field) => {
    expect(() => sequenceHeader.read(field)).toThrow(expect.objectContaining({ code: 'SEQUENCE_MISSING' }))
  })

  it.each([
    '',
    'shop-1;epoch=7;number=3',
    '"shop-1"',
    '"shop-1";epoch=7',
    '"shop-1";number=3;epoch=7',
    '"shop-1";epoch=7;number=3;more=1',
    '"shop-1";epoch=7;number=3, "shop-1";epoch=7;number=4',
    '"shop-1";epoch=0;number=3',
    '"shop-1";epoch=7;number=0',
    '"shop-1";epoch=-7;number=3',
    '"shop-1";epoch=7;number=3.5',
    '"shop-1";epoch=7;number=1e3',
    '"shop-1";epoch=7;number=1000000000000000',
    '"shop\\1";epoch=7;number=3',
    '"shop 1";epoch=7;number=3',
    '"";epoch=7;number=3',
    `"${'x'.repeat(256)}";epoch=7;number=3`,
  ])('refuses %j', (field) => {
    expect(() => sequenceHeader.read(field)).toThrow(expect.objectContaining({ code: 'SEQUENCE_INVALID' }))
  })

  it('refuses two fields', () => {
    const field = '"shop-1";epoch=7;number=3'
    expect(() => sequenceHeader.read([field, field])).toThrow(expect.objectContaining({ code: 'SEQUENCE_INVALID' }))
  })

  it('refuses to write what it could not read', () => {
    for (const at of [undefined, {}, { producer: 'a', epoch: 1, number: 0 }, { producer: 'ä', epoch: 1, number: 1 }]) {
      expect(() => sequenceHeader.write(at as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
      expect(() => sequenceNumberOf(at as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
  })
})

describe('Reprise-Accepted', () => {
  it('has the form of the number that was sent, and is ignored where it has not', () => {
    const at = { producer: 'shop-1', epoch: 7, number: 3 }
    const field = acceptedHeader.write(at)
    expect([acceptedHeader.read(field), acceptedHeader.read([field])]).toEqual([at, at])
    for (const other of [undefined, null, [], '', 'yes', '7;number=3', `${field}, ${field}`, [field, field]]) {
      expect(acceptedHeader.read(other)).toBeUndefined()
    }
  })
})
