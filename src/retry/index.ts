// Retry: may this be tried again, when, what did the failure mean, and what does it do to a service that is already
// down?

export type { SequenceNumber } from '../identity/index.js'
export {
  type Backoff,
  type BackoffData,
  type BackoffKind,
  type BackoffOptions,
  backoffFrom,
  constantDelay,
  type DecorrelatedOptions,
  decorrelatedJitter,
  equalJitter,
  fullJitter,
  type GrpcBackoffOptions,
  grpcBackoff,
  noJitter,
  type PastCap,
} from './backoff.js'
export { defaultClassifier } from './classify/default-classifier.js'
export {
  type HttpClassifierOptions,
  type HttpFacts,
  type HttpProblem,
  httpClassifier,
  httpClassifierFor,
  httpVerdict,
} from './classify/http.js'
export { abortClassifier, networkClassifier } from './classify/network.js'
export { type ConcurrencyOptions, concurrency, limitFrom } from './concurrency/concurrency.js'
export { type ConcurrencyData, type ConcurrencyLimit, Slots } from './concurrency/slots.js'
export {
  decideRepeat,
  type PolicyRules,
  type RepeatDecision,
  type RepeatFacts,
  type StopReason,
} from './decide-repeat.js'
export { areForeignLayers, type ForeignLayer, layersWith } from './foreign-layers.js'
export {
  atomic,
  type Guard,
  keyed,
  type Rung,
  readOnly,
  repeatable,
} from './guard.js'
export { type AttemptRecord, historyOf, type RetryHistory } from './history.js'
export type {
  Attempt,
  Body,
  HedgeOptions,
  Hedging,
  PolicyData,
  Resolution,
  RetryPolicyOptions,
  RunOptions,
  SequencedAttempt,
  SequencedBody,
} from './options.js'
export { type LiveOptions, policyFrom, type RetryPolicy, retry, retryPolicy } from './policy.js'
export { type Comparison, type ConditionalOptions, conditional } from './run/conditional.js'
export { hedging } from './run/hedge.js'
export {
  type Allowance,
  currentLayer,
  demandSameKey,
  type Layer,
  type Layers,
  layerScope,
  meet,
  type OpenLayer,
  ownedByCaller,
  repeatsLeft,
  spendRepeat,
  watchKeys,
} from './run/layers.js'
export { cancelBody } from './run/returned.js'
export { markSpent, type Spending } from './run/spent.js'
export { SentWatch } from './sent.js'
export { type SequencedGuard, sequenced } from './sequenced/numbered.js'
export { type Producer, type ProducerOptions, producer } from './sequenced/producer.js'
export {
  type Breaker,
  type BreakerData,
  type BreakerOptions,
  type BreakerSnapshot,
  type BreakerState,
  breakerFrom,
  type CommonBreakerData,
  type ConsecutiveBreakerOptions,
  type CountBreakerOptions,
  consecutiveBreaker,
  countBreaker,
  type WindowBreakerOptions,
  windowBreaker,
} from './target/breaker.js'
export {
  type Budget,
  type BudgetData,
  budgetFrom,
  type RatioBudgetData,
  type RatioBudgetOptions,
  ratioBudget,
  type TokenBudgetData,
  type TokenBudgetOptions,
  tokenBudget,
} from './target/budget.js'
export { type PerTargetOptions, perTarget } from './target/targets.js'
export { UnknownOutcomeError } from './unknown-outcome.js'
export {
  type Classifier,
  discard,
  failedBecause,
  firstOf,
  forCodes,
  type Happened,
  type Help,
  isReturnedVerdict,
  ownErrorClassifier,
  permanent,
  type ReturnedVerdict,
  soundVerdict,
  transient,
  unclassified,
  type Verdict,
  type VerdictExtra,
  when,
} from './verdict.js'
