// A delivery that a store will never write, here by a trigger that refuses it: it is seen, and is not tried again and
// again without a word.

import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished } from 'vitest'
import { consume, deadLetters } from '../../../src/messaging/index.js'
import type { QueryHandle } from '../../../src/stores/sql/index.js'
import { messageOf, ScriptedSource } from '../../messaging/consumer/scripted-source.js'
import { type LettersWorld, letterWorlds } from './letters-world.js'

const patient = { deadline: '60s', bodyLimit: '60s', connectionWait: '60s' } as const

const triggers: Readonly<Record<string, (table: string, which: string) => readonly string[]>> = {
  SQLite: (table, which) => [
    `create trigger no_${table} before insert on reprise_${table} when ${which}
     begin select raise(abort, 'not this one'); end`,
  ],
  PostgreSQL: (table, which) => [
    `create function no_${table}() returns trigger language plpgsql as
     $$ begin if ${which} then raise exception 'not this one'; end if; return new; end $$`,
    `create trigger no_${table} before insert on reprise_${table} for each row execute function no_${table}()`,
  ],
}

describe.each(letterWorlds.filter(([name]) => name in triggers))('a delivery that %s refuses', (name, inWorld) => {
  /** Lets tables refuse it, and delivers it between two others. */
  async function delivered({ db }: LettersWorld, ...tables: readonly string[]) {
    for (const table of tables) {
      // What is written in its place has another id.
      const statements = triggers[name]?.(table, table === 'dead_letter' ? '1 = 1' : "new.id = 'bad'") ?? []
      for (const text of statements) {
        await db.transact((tx) => (tx as unknown as QueryHandle).query(text, []), patient)
      }
    }
    const paused: unknown[] = []
    const hear = (event: unknown): void => void paused.push(event)
    diagnostics.subscribe('reprise.consumer.paused', hear)
    onTestFinished(() => void diagnostics.unsubscribe('reprise.consumer.paused', hear))
    const source = new ScriptedSource()
    const handled: string[] = []
    const handle = (_tx: unknown, { id }: { readonly id: string }): void => void handled.push(id)
    const consumer = consume(db, { name: 'mail', from: source, handle, deadline: '60s', storeLimit: '60s' })
    source.send(messageOf('1', 'a'), messageOf('bad', 'b'), messageOf('2', 'c'))
    await consumer.drain({ quiet: '500ms' })
    const letters = await deadLetters(db).list({ reader: 'mail' })
    return { letters, paused, acked: source.answered.filter(({ with: how }) => how === 'ack').length, handled }
  }

  it('is a dead letter that its key waits for', () =>
    inWorld(async (world) => {
      const { letters, paused, acked, handled } = await delivered(world, 'processed')
      expect(letters).toMatchObject([{ id: 'bad', parks: true, reason: expect.stringContaining('not this one') }])
      expect([paused, acked, handled.sort()]).toEqual([[], 3, ['1', '2']])
    }))

  it('is one that no key waits for where it cannot be put into the inbox either', () =>
    inWorld(async (world) => {
      const { letters, paused, acked, handled } = await delivered(world, 'processed', 'inbox')
      expect(letters).toMatchObject([{ code: 'MESSAGE_UNREADABLE', parks: false }])
      const [row] = await world.rows('dead_letter')
      expect(JSON.parse(String(row?.['data']))).toMatchObject({ id: 'bad', key: 'b', data: '{"of":"bad"}' })
      expect([paused, acked, handled.sort()]).toEqual([[], 3, ['1', '2']])
    }))

  it('pauses the consumer, which says why, where no dead letter can be written', () =>
    inWorld(async (world) => {
      const { letters, paused, acked, handled } = await delivered(world, 'processed', 'inbox', 'dead_letter')
      expect([letters, acked, handled.sort()]).toEqual([[], 2, ['1', '2']])
      const [first] = paused as readonly { readonly error: unknown }[]
      expect(first).toMatchObject({ consumer: 'mail', because: 'store' })
      expect(String(first?.error)).toContain('not this one')
    }))
})
