// How requests arrive and answers leave, on Node and in the fetch standard: what several adapters of servers share.

export { CapturedResponse, ResponseCut } from './capture.js'
export { fetchResponse, streamOf } from './fetch.js'
export { type FieldTarget, fieldsBefore, fieldsOf, setFields } from './fields.js'
export { misplaced, mountedTwice } from './misplaced.js'
export {
  type FrameworkFacts,
  held,
  type KeptBytes,
  type NodeRequest,
  nodeFacts,
  parsedFacts,
  sendToNode,
} from './node.js'
