// The classifiers that are on by default.

import { type Classifier, firstOf } from '../verdict.js'
import { httpClassifier } from './http.js'
import { abortClassifier, networkClassifier } from './network.js'

/** Answers of HTTP servers, failures of the network, aborts and time-outs. Asked after the caller's own classifier. */
export const defaultClassifier: Classifier = /* @__PURE__ */ firstOf(httpClassifier, networkClassifier, abortClassifier)
