// Conformance cases of brokers as data, in the manner of those of stores.

import type { Clock } from '../../../kernel/index.js'
import type { BrokerManifest, Delivery, Message, Publisher, Source, Subscription } from '../../../messaging/index.js'
import { ConformanceFailure } from '../expectations.js'

/** One broker under test, with a topic of its own, empty for each case. */
export interface BrokerWorld {
  readonly publisher: Publisher
  /** The clock that the publisher measures deadlines by. */
  readonly clock: Clock
  /**
   * Where the messages of the topic come from. Each group gets all of them from its first call on, and subscriptions to
   * the same one share them.
   */
  source(group: string): Source
  /** Lets time pass, and whatever is under way come about. */
  passes(ms: number): Promise<void>
  /** Breaks the subscriptions that are open, as a lost connection does. */
  cut(): Promise<void>
  /** Nobody reaches the broker from now on, or it is there again. */
  away(isAway: boolean): Promise<void>
  /** Puts a text on the topic that is no event. */
  putRaw(text: string): Promise<void>
  /** The message, changed so that the broker will not have it. */
  unwelcome(message: Message): Message
}

/** One case: something that a broker must do. It needs no test runner, and throws when the broker fails it. */
export interface BrokerCase {
  /** Stable, such as `broker.publish.03`. */
  readonly id: string
  /** Begins with MUST or SHOULD. */
  readonly title: string
  /** Why a broker with this manifest does not do it; `refusal` is run then. Undefined: the case applies. */
  readonly deniedBy?: (manifest: BrokerManifest) => string | undefined
  run(world: BrokerWorld): Promise<void>
  /** Checks what a broker does whose manifest denies the case. */
  refusal?(world: BrokerWorld): Promise<void>
}

/** Runs one case on a broker: the case itself, or its refusal where the manifest denies it. Throws when it fails. */
export async function runBrokerCase(subject: BrokerCase, world: BrokerWorld): Promise<'passed' | `refused: ${string}`> {
  const why = subject.deniedBy?.(world.publisher.manifest)
  if (why === undefined) {
    await subject.run(world)
    return 'passed'
  }
  if (subject.refusal === undefined) throw new Error(`${subject.id} can be denied and has no refusal to run`)
  await subject.refusal(world)
  return `refused: ${why}`
}

/** A message of a key. */
export function eventOf(key: string, number: number): Message {
  return {
    source: '/conformance',
    id: `${key}-${number}`,
    type: 'conformance.happened',
    subject: `subject/${key}`,
    key,
    place: { epoch: 7, number },
    version: number,
    atMs: 1_700_000_000_123,
    intent: 'intent-1',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    schema: 'https://example.com/schema',
    data: { number, text: 'ä"\u0000\n' },
  }
}

/** What was delivered to one subscription. */
export interface Received {
  readonly subscription: Subscription
  readonly deliveries: readonly Delivery[]
  /** The ids of what was delivered, in order. */
  ids(): readonly string[]
  /** Waits until so many were delivered. */
  until(count: number): Promise<void>
}

/** Opens a subscription that keeps what it gets, and answers by `answer`. */
export async function receiving(
  world: BrokerWorld,
  group: string,
  inFlight: number,
  answer: (delivery: Delivery) => Promise<void> = (delivery) => delivery.ack(),
): Promise<Received> {
  const deliveries: Delivery[] = []
  const receive = async (delivery: Delivery): Promise<void> => {
    deliveries.push(delivery)
    await answer(delivery).catch(() => undefined)
  }
  const subscription = await world.source(group).open(receive, { inFlight })
  return {
    subscription,
    deliveries,
    ids: () => deliveries.map(({ content }) => ('unreadable' in content ? 'unreadable' : content.id)),
    until: async (count) => {
      for (let tries = 0; deliveries.length < count; tries += 1) {
        if (tries === 200) throw new ConformanceFailure(`${deliveries.length} deliveries came, and should ${count}`)
        await world.passes(50)
      }
      // One too many would be on its way.
      await world.passes(50)
    },
  }
}
