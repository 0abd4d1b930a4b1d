// How requests arrive and answers leave, on Node and in the fetch standard: what several adapters of servers share.

export { fetchResponse } from './fetch-response.js'
export { type KeptBytes, type NodePlace, type NodeRequest, nodeFacts } from './node-facts.js'
export { sendToNode } from './node-response.js'
export { type FieldTarget, fieldsOf, isSent, lengthOf, mergeInto } from './response-fields.js'
export { streamOf } from './stream.js'
