// What a sign means in each phase, as far as most rows of a classification table say the same.

import type { ClassificationRow } from '../../atomicity/index.js'

/** The meaning of a sign in each phase; a phase that is left out: it cannot come there. */
export type PhaseWords = Pick<ClassificationRow, 'connecting' | 'body' | 'committing'>

/** The connection is gone: after COMMIT was sent nobody knows what became of it. */
export const lost: PhaseWords = { connecting: 'reconnect', body: 'reconnect', committing: 'resolve' }

/** A definite abort that another try may not meet. */
export const again: PhaseWords = { body: 'repeat', committing: 'repeat' }

/** A definite abort that the same input meets again. */
export const never: PhaseWords = { body: 'surface', committing: 'surface' }
