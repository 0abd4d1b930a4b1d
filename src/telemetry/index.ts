// Telemetry: the vocabulary of events, on channels that cost nothing while nobody listens.

export { type EventChannel, eventChannel } from './channels.js'
export {
  type RetryAttemptEvent,
  type RetryLayersEvent,
  type RetryRefusedEvent,
  retryAttempt,
  retryLayers,
  retryRefused,
} from './retry-events.js'
