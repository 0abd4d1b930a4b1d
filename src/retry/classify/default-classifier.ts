// The classifiers that are on by default, and the means to make one's own.

import { type Classifier, firstOf } from './classifier.js'
import { httpClassifier } from './http.js'
import { abortClassifier, networkClassifier } from './network.js'

export { type Classifier, firstOf, forCodes, unclassified, when } from './classifier.js'

/** Answers of HTTP servers, failures of the network, aborts and time-outs. Asked after the caller's own classifier. */
export const defaultClassifier: Classifier = /* @__PURE__ */ firstOf(httpClassifier, networkClassifier, abortClassifier)
