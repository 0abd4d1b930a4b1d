// A worker's way to the broker: a publisher and a source, each with a connection of its own, which is made anew after
// it broke.

import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import {
  type BrokerManifest,
  type Delivery,
  eventText,
  isReadable,
  type Published,
  type Publisher,
  readEvent,
  type Source,
  type Subscription,
} from '../../../src/messaging/index.js'
import type { FromBroker, TakenAs, ToBroker } from './broker.js'

const manifest: BrokerManifest = {
  broker: 'torture',
  order: 'key',
  confirm: 'memory',
  delay: false,
  deliveryCount: 'exact',
  dedupeMs: 0,
  redeliveryMs: 3_600_000,
  because: {},
}

/** A connection to the broker, once it is there. */
async function connected(port: number, onSaid: (said: FromBroker) => void): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  socket.on('error', () => undefined)
  const lines = createInterface({ input: socket })
  lines.on('error', () => undefined)
  lines.on('line', (line) => onSaid(JSON.parse(line) as FromBroker))
  return socket
}

const say = (socket: Socket, said: ToBroker): void => void socket.write(`${JSON.stringify(said)}\n`)

const published: Readonly<Record<TakenAs, Published>> = {
  taken: { is: 'confirmed' },
  refused: { is: 'refused', code: 'unwanted', reason: 'The broker does not take it.' },
  behind: { is: 'unsent', error: new Error('One of its key before it was refused.') },
}

/** Publishes to the broker. What left and was not answered is `unknown`; what found no connection is `unsent`. */
export function publisherAt(port: number): Publisher {
  const waiting = new Map<number, (answers: readonly TakenAs[] | undefined) => void>()
  let calls = 0
  let socket: Promise<Socket> | undefined
  const open = async (): Promise<Socket> => {
    const opened = await connected(port, (said) => {
      if (!('published' in said)) return
      waiting.get(said.published)?.(said.answers)
      waiting.delete(said.published)
    })
    opened.once('close', () => {
      socket = undefined
      for (const tell of waiting.values()) tell(undefined)
      waiting.clear()
    })
    return opened
  }
  const publish: Publisher['publish'] = async (messages, { deadline }) => {
    const all = (answer: Published): readonly Published[] => messages.map(() => answer)
    let opened: Socket
    try {
      socket ??= open()
      opened = await socket
    } catch (error) {
      socket = undefined
      return all({ is: 'unsent', error })
    }
    if (opened.destroyed) return all({ is: 'unsent', error: new Error('The connection is gone.') })
    calls += 1
    const call = calls
    const answered = new Promise<readonly TakenAs[] | undefined>((resolve) => {
      waiting.set(call, resolve)
      const timer = setTimeout(() => resolve(undefined), Math.max(0, deadline.expiresAtMs - performance.now()))
      timer.unref()
    })
    say(opened, { publish: call, texts: messages.map(eventText) })
    const answers = await answered
    waiting.delete(call)
    if (answers === undefined) return all({ is: 'unknown', error: new Error('The broker did not answer.') })
    return answers.map((answer) => published[answer])
  }
  return { manifest, publish }
}

/** Takes deliveries from the broker. */
export function sourceAt(port: number): Source {
  const open: Source['open'] = async (receive, { inFlight }) => {
    let [held, draining] = [0, false]
    let drained = (): void => undefined
    const onSaid = (said: FromBroker): void => {
      if (!('deliver' in said)) return
      held += 1
      void receive(deliveryOf(said)).finally(() => {
        held -= 1
        if (draining && held === 0) drained()
      })
    }
    const socket = await connected(port, onSaid)
    const tell = async (said: ToBroker): Promise<void> => {
      if (socket.destroyed) throw new Error('The connection is gone.')
      say(socket, said)
    }
    const deliveryOf = ({ deliver: tag, text, count }: Extract<FromBroker, { deliver: number }>): Delivery => {
      const read = readEvent(text)
      return {
        content: isReadable(read) ? read : { ...read, raw: text },
        count,
        ack: () => tell({ ack: tag }),
        again: () => tell({ again: tag }),
        refuse: () => tell({ ack: tag }),
        extend: () => tell({ extend: tag }),
      }
    }
    const ended = new Promise<void>((resolve, reject) => {
      socket.once('close', () => {
        if (draining) resolve()
        else reject(new Error('The connection to the broker broke.'))
      })
    })
    ended.catch(() => undefined)
    await tell({ subscribe: inFlight })
    const subscription: Subscription = {
      pause: () => void tell({ paused: true }).catch(() => undefined),
      resume: () => void tell({ paused: false }).catch(() => undefined),
      async drain() {
        draining = true
        await tell({ paused: true }).catch(() => undefined)
        if (held > 0) {
          await new Promise<void>((resolve) => {
            drained = resolve
          })
        }
        socket.destroy()
      },
      ended,
    }
    return subscription
  }
  return { manifest, open }
}
