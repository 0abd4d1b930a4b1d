// The classifiers that are on by default.

import { type Clock, systemClock } from '../../kernel/index.js'
import { type Classifier, firstOf } from '../verdict.js'
import { answersBy } from './http.js'
import { abortClassifier, networkClassifier } from './network.js'

/** {@link defaultClassifier}, which compares dates in `Retry-After` with that clock. */
export function defaultClassifierBy(clock: Clock): Classifier {
  return firstOf(answersBy(clock), networkClassifier, abortClassifier)
}

/** Answers of HTTP servers, failures of the network, aborts and time-outs. Asked after the caller's own classifier. */
export const defaultClassifier: Classifier = /* @__PURE__ */ defaultClassifierBy(systemClock)
