import { describe, expect, it } from 'vitest'
import { messageOf, ScriptedSource } from '../../../test/messaging/consumer/scripted-source.js'
import { settled, until, world } from '../../../test/messaging/consumer/world.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'
import { consume } from './consumer.js'

describe('a consumer that is told to stop', () => {
  it('finishes what it handles, and gives the rest back unacked', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const source = new ScriptedSource()
    const begun: string[] = []
    let finish = (): void => undefined
    const consumer = consume(db, {
      name: 'receipts',
      from: source,
      concurrency: 1,
      handle: (_tx, { id }) => {
        begun.push(id)
        return new Promise<void>((resolve) => {
          finish = resolve
        })
      },
      clock,
    })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    source.send(messageOf('1', 'a'), messageOf('2', 'b'), messageOf('3', 'a'))
    await until(clock, () => begun.length === 1)
    stop.abort()
    await clock.advance(100)
    expect(source.answered.filter(({ with: answer }) => answer === 'ack')).toEqual([])
    finish()
    expect(await settled(clock, running)).toMatchObject({ handled: 1 })
    expect(begun).toEqual(['1'])
    expect([...source.answered].sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      { id: '1', with: 'ack' },
      { id: '2', with: 'again' },
      { id: '3', with: 'again' },
    ])
    await expect(consumer.run({ signal: stop.signal })).resolves.toMatchObject({ handled: 1 })
  })

  it('works once at a time', async () => {
    const { consumer, clock } = world()
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    await expect(consumer.drain()).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    stop.abort()
    await settled(clock, running)
  })
})
