// The entry point of the guard: loading it puts the guard around the calls of this process. `node --import
// reprise/effect-guard`, or a test runner's set-up file.

import { guardCalls } from './calls.js'

export { allowEffect, effect } from './effect.js'

guardCalls()
