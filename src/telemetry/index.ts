// Telemetry: the vocabulary of events, on channels that cost nothing while nobody listens.

export { type EventChannel, eventChannel } from './channels.js'
export {
  type ConsumerFailedEvent,
  type ConsumerMessageEvent,
  type ConsumerParkedEvent,
  type ConsumerPausedEvent,
  consumerDuplicate,
  consumerFailed,
  consumerFenced,
  consumerHandled,
  consumerLate,
  consumerMismatch,
  consumerParked,
  consumerPaused,
} from './consumer-events.js'
export { type HttpAnsweredEvent, type HttpRekeyedEvent, httpAnswered, httpRekeyed } from './http-events.js'
export {
  type OperationLeaseEvent,
  type OperationSweepEvent,
  type OperationUpkeepEvent,
  operationLease,
  operationSweep,
  operationUpkeep,
} from './lease-events.js'
export {
  type MessagesGaugesEvent,
  type MessagesLettersEvent,
  type MessagesListeningEvent,
  type MessagesReaderEvent,
  type MessagesUntoldEvent,
  messagesGauges,
  messagesLetters,
  messagesListening,
  messagesUntold,
} from './message-events.js'
export {
  type OperationClaimedEvent,
  type OperationEvent,
  type OperationMisjudgedEvent,
  type OperationRefusedEvent,
  type OperationReplayedEvent,
  operationClaimed,
  operationExecuted,
  operationFailed,
  operationMisjudged,
  operationRefused,
  operationReplayed,
} from './operation-events.js'
export {
  type RelayFencedEvent,
  type RelayMessageEvent,
  type RelayMisansweredEvent,
  type RelayParkedEvent,
  type RelayPausedEvent,
  type RelayRefusedEvent,
  relayFenced,
  relayMisanswered,
  relayParked,
  relayPaused,
  relayPublished,
  relayRefused,
} from './relay-events.js'
export {
  type BreakerMode,
  type RetryAttemptEvent,
  type RetryBreakerEvent,
  type RetryHedgeEvent,
  type RetryLayersEvent,
  type RetryLimitEvent,
  type RetryRefusedEvent,
  retryAttempt,
  retryBreaker,
  retryHedge,
  retryLayers,
  retryLimit,
  retryRefused,
} from './retry-events.js'
export { type SequenceRefusedEvent, sequenceRefused } from './sequence-events.js'
export {
  type AfterCommitFailedEvent,
  afterCommitFailed,
  type TransactionAttemptEvent,
  type TransactionEffectEvent,
  type TransactionLocalEvent,
  type TransactionResolvedEvent,
  type TransactionSharedEvent,
  transactionAttempt,
  transactionEffect,
  transactionLocal,
  transactionResolved,
  transactionShared,
} from './transaction-events.js'
export {
  type WindowDroppedEvent,
  type WindowUncheckedEvent,
  type WindowUnrememberedEvent,
  windowDropped,
  windowUnchecked,
  windowUnremembered,
} from './window-events.js'
