// The simulator: what a policy does to a service, before it does. Virtual time, the real policy code, deterministic by
// seed.

export {
  type ContentionOptions,
  type ContentionResult,
  type PublishedBackoff,
  publishedBackoffs,
  simulateContention,
} from './contention.js'
export type { QuotaBudgetData, QuotaBudgetOptions } from './peer-quota.js'
export { Storm, type StormReport, type StormTotals, simulateStorm } from './storm.js'
export { type StormFindings, type StormOutcome, type StormSecond, stormFindings } from './storm-findings.js'
export {
  hiddenCapacity,
  type Refusal,
  type StormOptions,
  type StormSettings,
  triggerEndSeconds,
} from './storm-settings.js'
