// Drill: duplicates on purpose, in a service that is not in production. A share of the calls that succeeded is made
// again, compared with the first, and stopped before anything could happen twice.

export type { Drill, DrillCounts, DrilledCall, DrillOptions, Repeat, Repeated } from './contract.js'
export { drill } from './drill.js'
export {
  type DrillEvent,
  type DrillSkippedEvent,
  type DrillViolationEvent,
  drillAgreed,
  drillSkipped,
  drillViolation,
} from './events.js'
