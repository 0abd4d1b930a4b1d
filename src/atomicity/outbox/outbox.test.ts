import { describe, expect, it, vi } from 'vitest'
import { type Key, withIntent } from '../../identity/index.js'
import { eventLoopTurn, type SchemaResult, type StandardSchema } from '../../kernel/index.js'
import type { MessageCodec } from './codec.js'
import type { Emission, MessageDraft, StoredMessage } from './message.js'
import { type EmissionSink, type MessageOptions, Outbox } from './outbox.js'

/** An outbox whose emissions are kept in a list. */
function world(options: MessageOptions = {}) {
  const outbox = new Outbox('shop', options)
  const kept: Emission[] = []
  const sink: EmissionSink = { readOnly: false, keep: (emissions) => void kept.push(...emissions) }
  return { outbox, kept, emit: (given: MessageDraft | readonly MessageDraft[]) => outbox.emit(given, sink) }
}

const placed: MessageDraft = { type: 'placed', subject: 'order/1', data: { total: 1 } }

/** The row of an emission. */
const storedAs = (emission: Emission, source = '/shop'): StoredMessage => ({
  ...emission,
  source,
  place: { epoch: 1, number: 1 },
  atMs: 0,
})

const schema = (validate: (value: unknown) => SchemaResult | Promise<SchemaResult>): StandardSchema => ({
  '~standard': { version: 1, vendor: 'test', validate },
})

describe('emit', () => {
  it('mints an id where none is given, and answers at once where nothing has to be waited for', () => {
    const { emit, kept } = world()
    const id = emit(placed)
    const ids = emit([placed, { ...placed, id: 'mine', key: 'customer/7' }])
    expect(kept.map((emission) => emission.id)).toEqual([id, ...(ids as string[])])
    expect(kept.map(({ key }) => key)).toEqual(['order/1', 'order/1', 'customer/7'])
    expect(emit([])).toEqual([])
  })

  it('prints the data when it is called: what becomes of it later is not emitted', () => {
    const { emit, kept } = world()
    const data = { total: 1 }
    emit({ ...placed, data })
    data.total = 2
    expect(kept[0]?.data).toBe('{"total":1}')
  })

  it('keeps a delayed message, and one without subject and key, in order with no other', () => {
    const { emit, kept } = world()
    emit([
      { ...placed, id: 'late', after: '2s' },
      { type: 'note', data: null, id: 'single' },
      { ...placed, after: 0 },
    ])
    expect(kept.map(({ key, afterMs }) => [key, afterMs])).toEqual([
      ['reprise:late', 2_000],
      ['reprise:single', 0],
      ['order/1', 0],
    ])
  })

  it('carries a name derived from the intent in flight, and never its key', () => {
    const { emit, kept } = world()
    withIntent({ key: 'raw-key-1' as Key }, () => emit(placed))
    emit(placed)
    expect(kept.map(({ intent }) => intent)).toEqual([expect.stringMatching(/^d1-/), undefined])
    expect(JSON.stringify(kept)).not.toContain('raw-key-1')
  })

  it('carries the trace context that it is given, and leaves out what is none', () => {
    const traces = ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'none', undefined]
    const { emit, kept } = world({ traceparent: () => traces[kept.length] })
    for (const _ of traces) emit(placed)
    expect(kept.map(({ traceparent }) => traceparent)).toEqual([traces[0], undefined, undefined])
  })

  it('refuses in a read-only transaction before it looks at anything', () => {
    const { outbox } = world()
    const sink: EmissionSink = { readOnly: true, keep: () => expect.unreachable('it was kept') }
    expect(() => outbox.emit({} as MessageDraft, sink)).toThrow(
      expect.objectContaining({ code: 'TRANSACTION_READ_ONLY' }),
    )
  })

  it('counts the bytes of the data, not its characters', () => {
    const { emit } = world({ largestBytes: 10 })
    emit({ ...placed, data: 'éééé' })
    expect(() => emit({ ...placed, data: 'ééééx' })).toThrow(
      expect.objectContaining({ code: 'MESSAGE_TOO_LARGE', details: { bytes: 11, limitBytes: 10 } }),
    )
  })
})

describe('a schema', () => {
  it('checks the data of its type, which is stored as it was given', async () => {
    const sound = vi.fn(() => ({ value: 'changed' }) as SchemaResult)
    const { emit, kept } = world({ schemas: { placed: schema(sound) } })
    emit([placed, { ...placed, type: 'other' }])
    expect(sound).toHaveBeenCalledExactlyOnceWith({ total: 1 })
    expect(kept[0]?.data).toBe('{"total":1}')
  })

  it.each([
    ['at once', (result: SchemaResult) => result],
    ['later', (result: SchemaResult) => Promise.resolve(result)],
  ])('refuses data %s, says where it is wrong, and keeps what it says out of the message', async (_when, answer) => {
    const issues = [
      { message: 'secret', path: ['lines', 0, { key: 'a/b' }] },
      { message: 'secret', path: undefined },
    ]
    const { emit, kept } = world({ schemas: { placed: schema(() => answer({ issues })) } })
    const refused = await (async () => emit([{ ...placed, type: 'other' }, placed]))().catch((error: unknown) => error)
    expect(refused).toMatchObject({
      code: 'MESSAGE_INVALID',
      details: { field: 'data', issues: 2, at: '/lines/0/a~1b, its root' },
      cause: issues,
    })
    expect(String(refused)).not.toContain('secret')
    expect(kept).toEqual([])
  })

  it('that fails itself refuses too', async () => {
    const cause = new Error('broken')
    const throws = world({ schemas: { placed: schema(() => Promise.reject(cause)) } })
    await expect(throws.emit(placed)).rejects.toMatchObject({ code: 'MESSAGE_INVALID', cause })
    const synchronous = world({
      schemas: {
        placed: schema(() => {
          throw cause
        }),
      },
    })
    expect(() => synchronous.emit(placed)).toThrow(expect.objectContaining({ code: 'MESSAGE_INVALID', cause }))
  })
})

describe('codecs', () => {
  const turned = (text: string): string => [...text].reverse().join('')
  const codec: MessageCodec = { name: 'turned-1', encode: turned, decode: turned }

  it('write what is stored, and are found again by their names', () => {
    const { emit, kept } = world({ codec })
    emit(placed)
    const [emission] = kept as [Emission]
    expect([emission.codec, emission.data]).toEqual(['turned-1', '}1:"latot"{'])
    const read = (options: MessageOptions) => new Outbox('shop', options).reading.dataOf(storedAs(emission))
    expect([read({ codec }), read({ codecs: [codec] })]).toEqual([{ total: 1 }, { total: 1 }])
    expect(() => read({})).toThrow(expect.objectContaining({ code: 'MESSAGE_UNREADABLE' }))
    const erased = { ...codec, decode: () => undefined }
    expect(read({ codec: erased })).toBeUndefined()
    const broken = { ...codec, decode: () => '{' }
    expect(() => read({ codec: broken })).toThrow(expect.objectContaining({ code: 'MESSAGE_UNREADABLE' }))
  })

  it.each([[Promise.resolve('later')], ['a\0b']])('may not make %j of it', (text) => {
    const { emit } = world({ codec: { ...codec, encode: () => text as string } })
    expect(() => emit(placed)).toThrow(expect.objectContaining({ code: 'MESSAGE_INVALID' }))
  })

  it('read what is plain JSON, whichever is in use', () => {
    const { emit, kept } = world()
    emit(placed)
    expect(new Outbox('shop', { codec }).reading.dataOf(storedAs(kept[0] as Emission))).toEqual({ total: 1 })
  })
})

describe('who waits for messages', () => {
  it('is called once for all commits of a turn, and not after its end; one that throws keeps nobody from it', async () => {
    const { outbox } = world()
    const [first, second] = [vi.fn(), vi.fn()]
    const broken = outbox.reading.onEmit(() => {
      throw new Error('of a listener')
    })
    const ends = [first, second].map((listener) => outbox.reading.onEmit(listener))
    outbox.wake()
    outbox.wake()
    expect(first).not.toHaveBeenCalled()
    await eventLoopTurn()
    await eventLoopTurn()
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 1])
    broken()
    ends[0]?.()
    outbox.wake()
    await eventLoopTurn()
    await eventLoopTurn()
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 2])
  })
})

it.each([
  { source: '' },
  { source: 'with space' },
  { source: 7 },
  { largestBytes: 0 },
  { largestBytes: 1e9 },
  { codec: {} },
  { codec: { name: '', encode: () => '', decode: () => '' } },
  { codecs: [codecNamed('a'), codecNamed('a')] },
  { schemas: { placed: {} } },
  { schemas: 'all' },
  { traceparent: '00-' },
  { largest: 5 },
])('refuses options that cannot be: %j', (options) => {
  expect(() => new Outbox('shop', options as MessageOptions)).toThrow(
    expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
  )
})

function codecNamed(name: string): MessageCodec {
  return { name, encode: (text) => text, decode: (text) => text }
}
