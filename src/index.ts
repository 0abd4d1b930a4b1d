// The main entry point: the names most programs need. Each module has an entry point of its own with the rest.

export {
  contentKey,
  currentIntent,
  derive,
  deriveKey,
  fingerprint,
  type Key,
  keyWindow,
  mintKey,
  parseKey,
  parseKeyField,
  printKeyField,
  type Scope,
  sameContent,
  scope,
  storedKey,
  withIntent,
} from './identity/index.js'
export { type Duration, deadlineAfter, type ErrorCode, isRepriseError, RepriseError } from './kernel/index.js'
export {
  type Guard,
  keyed,
  type RetryPolicy,
  readOnly,
  repeatable,
  retry,
  retryPolicy,
  UnknownOutcomeError,
} from './retry/index.js'
