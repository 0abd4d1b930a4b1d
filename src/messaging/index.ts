// Messaging: messages between processes, recognised when they come again. It begins with the dedupe window, for streams
// without transactions; outbox, relays, consumers and dead letters will be here too.

export { type WindowFaultPoint, windowFaultPoints } from './window/fault-points.js'
export type { Mark, SeenStore, WindowBounds, WindowStore } from './window/seen-store.js'
export {
  type DedupeWindow,
  type DedupeWindowOptions,
  dedupeWindow,
  type PassCall,
  type Passed,
  type PassOptions,
  type Sink,
  type WindowCounts,
  type WindowId,
} from './window/window.js'
