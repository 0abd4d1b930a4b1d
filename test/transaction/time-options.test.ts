// Invalid time limits: refused with one code by transactions, updates and operations, before anything is opened.

import { describe, expect, it } from 'vitest'
import { hold, leased } from '../../src/idempotency/index.js'
import { scope } from '../../src/identity/index.js'
import { memory } from '../../src/stores/memory/index.js'

const none: readonly (readonly [name: string, value: unknown])[] = [
  ['null', null],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['a negative number', -1],
  ['a negative text', '-1s'],
  ['text without a unit', 'soon'],
  ['a flag', true],
]

const update = { table: 'items', where: { id: 'x' }, decide: () => undefined }
const definition = {
  scope: () => scope('tests'),
  key: () => 'key-of-the-call' as never,
  window: '1h',
} as const

function domain(defaults: object = {}) {
  let bodies = 0
  const db = memory({ name: 'times', ...defaults })
  db.table('items', { unique: [['id']] })
  const run = async () => {
    bodies += 1
  }
  const pay = db.operation('pay', { ...definition, run })
  const charge = leased('charge', { ...definition, store: db, lease: '10s', recover: hold(), run })
  return { db, run, pay, charge, bodies: () => bodies }
}

const refusal = (option: string) => ({
  code: 'DURATION_INVALID',
  message: expect.stringMatching(new RegExp(`^The option ${option} is not valid\\. A duration must .*'1\\.5s'\\.$`)),
  details: expect.objectContaining({ option }),
})

describe.each(none)('a limit that is %s', (_, value) => {
  it('is refused by a transaction', async () => {
    const { db, run, bodies } = domain()
    for (const option of ['deadline', 'connectionWait', 'bodyLimit', 'lockWait']) {
      await expect(db.transact(run, { [option]: value } as never)).rejects.toMatchObject(refusal(option))
      await expect(db.optimistic(update, { [option]: value } as never)).rejects.toMatchObject(refusal(option))
    }
    expect(bodies()).toBe(0)
  })

  it('is refused as the deadline of an operation’s call', async () => {
    const { pay, charge, bodies } = domain()
    const calls = [
      async () => pay({}, { deadline: value } as never),
      async () => charge({}, { deadline: value } as never),
    ]
    for (const call of calls) await expect(call()).rejects.toMatchObject(refusal('deadline'))
    expect(bodies()).toBe(0)
  })

  it('is refused as the default of a domain, when it is made', () => {
    for (const option of ['deadline', 'connectionWait', 'bodyLimit', 'lockWait']) {
      expect(() => memory({ name: 'times', [option]: value } as never)).toThrow(
        expect.objectContaining(refusal(option)),
      )
    }
  })
})

describe('a point in time that is none', () => {
  it.each([[{}], [{ expiresAtMs: null }], [{ expiresAtMs: Number.NaN }], [{ expiresAtMs: Number.POSITIVE_INFINITY }]])(
    'is refused: %j',
    async (deadline) => {
      const { db, run } = domain()
      const refused = { code: 'ARGUMENT_INVALID', details: { option: 'deadline' } }
      await expect(db.transact(run, { deadline } as never)).rejects.toMatchObject(refused)
      await expect(db.optimistic(update, { deadline } as never)).rejects.toMatchObject(refused)
    },
  )

  it('is a passed one where it lies before now', async () => {
    const { db, run } = domain()
    const refused = { code: 'DEADLINE_EXCEEDED' }
    await expect(db.transact(run, { deadline: { expiresAtMs: -1 } })).rejects.toMatchObject(refused)
  })
})

describe('options that are none', () => {
  it('are refused', async () => {
    const { db, run } = domain()
    for (const options of [null, 'text', 5]) {
      await expect(db.transact(run, options as never)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
      await expect(db.optimistic(update, options as never)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    }
  })
})
