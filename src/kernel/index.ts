// The kernel: time, chance, names and text, as arguments. It imports no other module of Reprise and none of Node.

export { type DiagnosticsChannel, diagnosticsChannel, onDiagnostics, warn, warnOnce } from './diagnostics.js'
export * from './digest.js'
export * from './errors.js'
export { armFaultPoints, type FaultAction, faultPoint } from './fault-points.js'
export { type IdSource, type IdSourceOptions, uuidv4, uuidv7, uuidv7Source, uuidv7TimeMs } from './ids.js'
export * from './json/index.js'
export * from './live-scope.js'
export { type Defined, defined, demandKnown, demandWhole, nearestName, pick } from './options.js'
export * from './random.js'
export { builtin, environmentVariable } from './runtime.js'
export * from './seal.js'
export { encodeTuple, isBytes, isStoreName, isWellFormed, keepableText } from './text.js'
export {
  afterMicrotasks,
  type CancelTimer,
  type Clock,
  eventLoopTurn,
  systemClock,
  type TimerOptions,
} from './time/clock.js'
export * from './time/duration.js'
export { dayStartMs, isoTime } from './time/iso-time.js'
export * from './time/wait.js'
