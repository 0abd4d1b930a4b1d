// The server side of HTTP, framework-free: request facts in, decision, answer out. Adapters translate; what is decided is decided here.

export {
  type Answer,
  type AnswerBody,
  AnswerError,
  type Answered,
  type AnswerHeaders,
  type AnswerProblem,
  answerOf,
  isAnswered,
  reply,
} from './answer/answer.js'
export { type FinishedAnswer, finish, isBodiless } from './answer/finished.js'
export { replayedFields, type StoredAnswer, store as storedAnswer } from './answer/stored.js'
export { type OpenApiFragment, type OpenApiNode, type OpenApiOptions, openApiFragment } from './openapi.js'
export { type CurrentState, checkPreconditions, entityTag } from './preconditions.js'
export {
  type ProblemKind,
  type ProblemName,
  type ProblemOptions,
  problem,
  problemBase,
  problemKinds,
} from './problems.js'
export type { RequestFacts } from './request/facts.js'
export { HttpRequest, invalid } from './request/http-request.js'
export { type BodySource, limited, readFetchBody, readNodeBody } from './request/node-body.js'
export { Arrival, type ArrivalParts } from './route/arrival.js'
export {
  type AtomicHandler,
  type AtomicHandlerCall,
  atomicRoute,
  type RouteDomain,
} from './route/atomic.js'
export { type LeasedHandler, type LeasedHandlerCall, leasedRoute } from './route/leased.js'
export {
  type AtomicRouteOptions,
  type LeasedRouteOptions,
  type Principal,
  type RouteOptions,
  storesStatus,
} from './route/options.js'
export type { Route } from './route/route.js'
export type { HandlerCall } from './route/run-handler.js'
