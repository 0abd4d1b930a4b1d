// The way between the two services: each event is a POST. It is answered when the receiver has committed, so that the
// answer is the confirmation for one side and the acknowledgement for the other.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { remainingMs } from 'reprise/kernel'
import {
  type BrokerManifest,
  type Delivery,
  eventMediaType,
  eventText,
  isReadable,
  type Message,
  type Published,
  type Publisher,
  type PublishLimits,
  readEvent,
  type Source,
  type SourceLimits,
  type Subscription,
} from 'reprise/messaging'
import { Receiver } from '../wire/receiver.js'

const manifest: BrokerManifest = {
  broker: 'http',
  order: 'key',
  confirm: 'disk',
  delay: false,
  deliveryCount: 'none',
  dedupeMs: 0,
  redeliveryMs: undefined,
  because: {
    delay: 'The sender decides when it comes again.',
    deliveryCount: 'A POST does not say how often it was sent.',
    dedupeMs: 'Nobody stands between sender and receiver.',
  },
}

/** Publishes to the receiver at an address. */
export function httpPublisher(url: string): Publisher {
  return { manifest, publish: (messages, limits) => publishAll(url, messages, limits) }
}

// Different keys side by side; of a key one after the other, and none behind one that was not confirmed.
async function publishAll(
  url: string,
  messages: readonly Message[],
  limits: PublishLimits,
): Promise<readonly Published[]> {
  const lanes = new Map<string, Promise<Published>>()
  const sending = messages.map((message) => {
    const before = lanes.get(message.key)
    const sent = (before ?? Promise.resolve(confirmed)).then((last) =>
      last.is === 'confirmed' ? publishOne(url, message, limits) : unsent(new Error('The one before did not arrive.')),
    )
    lanes.set(message.key, sent)
    return sent
  })
  return Promise.all(sending)
}

const confirmed: Published = { is: 'confirmed' }

function unsent(error: unknown): Published {
  return { is: 'unsent', error }
}

async function publishOne(url: string, message: Message, { deadline }: PublishLimits): Promise<Published> {
  try {
    const { status } = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': eventMediaType },
      body: eventText(message),
      signal: AbortSignal.timeout(Math.max(1, Math.floor(remainingMs(deadline)))),
    })
    if (status === 204) return confirmed
    if (status === 422) return { is: 'refused', code: 'HTTP_422', reason: 'The receiver cannot read it.' }
    return unsent(new Error(`The receiver answered ${status}.`))
  } catch (error) {
    // Without a connection nothing was sent. With one that broke, nobody can tell.
    const { code } = Object((error as Error).cause) as { readonly code?: unknown }
    return code === 'ECONNREFUSED' ? unsent(error) : { is: 'unknown', error }
  }
}

const mostBytes = 1_048_576
const statuses = { confirmed: 204, unsent: 503, refused: 422 }

/** Where events arrive. @param arrived Is told of each, the repeated ones included. */
export class HttpSource implements Source {
  readonly manifest = manifest
  readonly #arrived: () => void
  #receiver: Receiver | undefined

  constructor(arrived: () => void) {
    this.#arrived = arrived
  }

  async open(receive: (delivery: Delivery) => Promise<void>, { inFlight }: SourceLimits): Promise<Subscription> {
    this.#receiver = new Receiver(receive, inFlight)
    return this.#receiver
  }

  /** Takes a request. One that nobody is ready for is turned away, and comes again. Never rejects. */
  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text: string | undefined
    try {
      text = await textOf(request)
    } catch {
      return // whoever sends it is gone, and sends it again
    }
    this.#arrived()
    if (text === undefined) end(response, 422)
    else if (this.#receiver?.isReady !== true) end(response, 503)
    else end(response, statuses[await this.#receiver.take(readContent(text))])
  }
}

function readContent(text: string): Delivery['content'] {
  const read = readEvent(text)
  return isReadable(read) ? read : { ...read, raw: text }
}

async function textOf(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request) {
    bytes += (part as Buffer).length
    if (bytes > mostBytes) return undefined
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts).toString('utf8')
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status).end()
}
