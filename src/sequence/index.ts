// Sequence: a producer numbers its intents, and the receiver accepts each number once, in order, from the epoch that is
// open. Duplicates, gaps and zombies are told apart by one row a producer.

export { type ProducerRow, ruleOnNumber, type SequenceRuling } from './rule.js'
export {
  type Accepted,
  type Arrived,
  type ForgetOptions,
  type Sequence,
  type Sequences,
  type SequenceTransact,
  sequencesOf,
} from './sequence.js'
export type { AcceptedMark, ProducerName, SequencePlace, SequenceStore } from './store.js'
