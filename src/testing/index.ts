// What tests need to hold time and chance in their own hands.

export { type Random, seededRandom } from '../kernel/index.js'
export { type ManualClock, type ManualClockOptions, manualClock } from './manual-clock.js'
