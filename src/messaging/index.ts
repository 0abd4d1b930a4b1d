// Messaging: messages between processes, each taking effect once however often it arrives: relays, consumers, dead
// letters, and a dedupe window for streams without transactions.

export type {
  Emission,
  Emits,
  EncodedText,
  Message,
  MessageCodec,
  MessageDraft,
  MessageIdentity,
  MessageOptions,
  MessagePlace,
  OutboxReading,
  StoredMessage,
} from '../atomicity/index.js'
export { encryptedMessages, type MessageEncryptionOptions } from '../idempotency/index.js'
export { type ArrivalFacts, type ArrivalLane, type ArrivalStep, arrivalOf, placeBehind } from './arrival.js'
export type {
  BrokerManifest,
  Delivery,
  Published,
  Publisher,
  PublishLimits,
  Source,
  SourceLimits,
  Subscription,
} from './broker.js'
export {
  eventAttributes,
  eventMediaType,
  eventText,
  isReadable,
  readAttributes,
  readEvent,
  type Unreadable,
} from './cloudevents.js'
export {
  type ConsumeLeasedOptions,
  consumeLeased,
  type LeasedConsumer,
  type LeasedConsumerDomain,
} from './consumer/consume-leased.js'
export {
  type Consumer,
  consume,
  type DrainConsumerOptions,
  type RunConsumerOptions,
} from './consumer/consumer.js'
export { type OnceOptions, type OnceResult, once } from './consumer/once.js'
export type { ConsumeOptions, ConsumerDomain, MessageHandler } from './consumer/options.js'
export { type ConsumerFaultPoint, consumerFaultPoints } from './consumer/run/fault-points.js'
export { type ConsumerCounts, messageKey } from './consumer/run/handling.js'
export {
  type DeadLetters,
  type DecisionOptions,
  deadLetters,
  type EditOptions,
  type LetterDomain,
  type LetterListQuery,
  type RedriveOptions,
  type WhichLetters,
} from './dead-letters/dead-letters.js'
export type { LetterNote, ListedLetter, ShownLetter } from './dead-letters/letter.js'
export type { RedriveCounts, RedriveReport } from './dead-letters/redrive.js'
export type {
  Arrival,
  Arrived,
  ClaimedLane,
  ClaimedLanes,
  DeadLetter,
  LaneEnd,
  LaneQuery,
  LaneStore,
  LetterDecision,
  LetterDraft,
  Reader,
} from './lanes.js'
export type {
  Decided,
  LetterGroup,
  LetterQuery,
  LetterStore,
  MessagePurgeQuery,
  MessagesPurged,
  ReaderState,
  WhichLetter,
} from './letters.js'
export { type MessageType, messageType, schemasOf, type TypedSchema } from './message-type.js'
export { type RelayFaultPoint, relayFaultPoints } from './relay/fault-points.js'
export type { RelayDomain, RelayOptions } from './relay/options.js'
export { type Relay, relay } from './relay/relay.js'
export type { RelayCounts } from './relay/runner.js'
export type { MessageDomain, MessageStore } from './store.js'
export {
  type CausedQuery,
  type MessageTrace,
  type ReaderTrace,
  type TraceFacts,
  type TraceStore,
  traceOf,
} from './traces.js'
export { type GaugesOptions, gauges, type MessageGauges, type ReaderGauges } from './upkeep/gauges.js'
export {
  type Upkeep,
  type UpkeepDomain,
  type UpkeepOptions,
  type UpkeepReport,
  upkeepOf,
} from './upkeep/keeper.js'
export {
  type MessagePurgeCounts,
  type MessagePurgeOptions,
  type MessagePurgeReport,
  purgeMessages,
} from './upkeep/purge.js'
export type {
  DedupeWindow,
  DedupeWindowOptions,
  PassCall,
  Passed,
  PassOptions,
  Sink,
  WindowCounts,
  WindowId,
} from './window/contract.js'
export { type WindowFaultPoint, windowFaultPoints } from './window/fault-points.js'
export type { Mark, SeenStore, WindowBounds, WindowStore } from './window/seen-store.js'
export { dedupeWindow } from './window/window.js'
