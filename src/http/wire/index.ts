// How requests arrive and answers leave, on Node and in the fetch standard: what several adapters of servers share.

export { fetchResponse, streamOf } from './fetch.js'
export { type FieldTarget, fieldsOf, setFields } from './fields.js'
export { type FrameworkFacts, held, type KeptBytes, type NodeRequest, nodeFacts, sendToNode } from './node.js'
