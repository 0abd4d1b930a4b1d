// The server side of HTTP, framework-free: request facts in, decision, answer out. Adapters translate; what is decided
// is decided here.

export {
  type Answer,
  type AnswerBody,
  AnswerError,
  type Answered,
  type AnswerHeaders,
  type AnswerProblem,
  answerOf,
  discardBody,
  finish,
  isAnswered,
  isBodiless,
  type ProblemError,
  reply,
} from './answer/answer.js'
export { type AnswerJson, replayedFields, storesStatus } from './answer/stored.js'
export {
  type DropInOptions,
  dropInRoute,
  isEventStream,
  mostHeldBytes,
  notHeld,
  tooLargeToHold,
} from './drop-in.js'
export { type OpenApiFragment, type OpenApiNode, type OpenApiOptions, openApiFragment } from './openapi.js'
export { type CurrentState, checkPreconditions, entityTag } from './preconditions.js'
export {
  type Problem,
  type ProblemKind,
  type ProblemName,
  type ProblemOptions,
  problem,
  problemBase,
  problemKinds,
  problemOf,
} from './problems.js'
export {
  type BodySource,
  limited,
  type PeekedSource,
  peekNodeBody,
  readFetchBody,
  readNodeBody,
} from './request/body.js'
export { HttpRequest, invalid, type RequestFacts } from './request/http-request.js'
export { type AtomicHandler, type AtomicHandlerCall, atomicRoute, type RouteDomain } from './route/atomic.js'
export type { CauseLog, RefusalCause } from './route/causes.js'
export { Arrival, type ArrivalParts, type HandlerCall } from './route/handler.js'
export {
  type LeasedHandler,
  type LeasedHandlerCall,
  type LeasedMount,
  type LeasedRoute,
  leasedMount,
  leasedRoute,
} from './route/leased.js'
export type { AtomicRouteOptions, LeasedRouteOptions, Parse, Parsed, RouteOptions } from './route/options.js'
export type { Principal, PrincipalNames } from './route/principal.js'
export type { Route } from './route/route.js'
export type { DrainOptions } from './work/long-work.js'
