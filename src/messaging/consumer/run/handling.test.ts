import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it } from 'vitest'
import { messageOf } from '../../../../test/messaging/consumer/scripted-source.js'
import { Says, settled, world } from '../../../../test/messaging/consumer/world.js'
import { transient } from '../../../retry/index.js'
import { letterOf } from './handling.js'

it('tells of each message what became of it, and of each pause', async () => {
  const told: [string, unknown][] = []
  const listener = (message: unknown, name: string | symbol): void => {
    const { id, because, code } = message as Record<string, unknown>
    told.push([String(name).slice('reprise.consumer.'.length), id ?? because])
    if (code !== undefined) told.push(['code', code])
  }
  const names = ['handled', 'duplicate', 'mismatch', 'failed', 'parked', 'late', 'fenced', 'paused'].map(
    (name) => `reprise.consumer.${name}`,
  )
  for (const name of names) subscribe(name, listener)
  try {
    const { source, failing, drain } = world({ order: 'gapless' })
    const at = (id: string, number: number, data: unknown = {}) =>
      messageOf(id, 'a', { place: { epoch: 1, number }, data })
    failing.set('bad', new TypeError('no'))
    source.send(at('2', 2), at('2', 2), at('2', 2, { other: true }), at('1', 1), messageOf('bad', 'b'))
    await drain()
    const paused = world()
    paused.failing.set('1', new Says(transient('503', 'no', { overload: true })))
    paused.source.send(messageOf('1', 'a'))
    await settled(paused.clock, paused.consumer.drain())
  } finally {
    for (const name of names) unsubscribe(name, listener)
  }
  expect(told).toEqual(
    expect.arrayContaining([
      ['handled', '2'],
      ['duplicate', '2'],
      ['mismatch', '2'],
      ['late', '1'],
      ['failed', 'bad'],
      ['parked', 'bad'],
      ['code', 'TypeError'],
      ['code', 'MESSAGE_LATE'],
      ['paused', 'overload'],
    ]),
  )
  expect(told.filter(([name]) => name === 'fenced')).toEqual([])
})

it('gives a letter a history that is JSON, also where nothing happened before', () => {
  const { data: _, ...envelope } = messageOf('1', 'a')
  const stored = { ...envelope, place: { epoch: 0, number: 1 }, codec: undefined, data: '{}' }
  const next = { is: 'park', code: 'MESSAGE_GAP', reason: 'a gap', history: '' } as const
  expect(letterOf(stored, next)).toEqual({ message: stored, code: 'MESSAGE_GAP', reason: 'a gap', history: '[]' })
})
