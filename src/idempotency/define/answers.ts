// The five answers of an operation, as fields that can be read: identity, rung, placement, reversibility, domain.

import type { OperationAnswers } from '../definition.js'
import type { Place } from './place.js'
import type { OperationSettings } from './settings.js'

/** What the mode of an operation says of it. */
export interface ModeAnswers extends Pick<OperationAnswers, 'mode' | 'rung' | 'placement' | 'leaseMs' | 'recovery'> {
  /** What its domain holds. */
  readonly holds: OperationAnswers['domain']['holds']
}

/** The answers of a definition. */
export function answersOf<Mode extends ModeAnswers>(
  settings: OperationSettings<never>,
  { domain, manifest }: Place,
  { mode, rung, placement, holds, leaseMs, recovery }: Mode,
): OperationAnswers & { readonly mode: Mode['mode'] } {
  const { name, mintedBy, windowMs, retryHorizonMs, horizonDeclared, options, reversibility } = settings
  const content = options.content === 'none' ? 'ignored' : 'compared'
  return Object.freeze({
    name,
    mode,
    identity: Object.freeze({ mintedBy, windowMs, retryHorizonMs, horizonDeclared, content }),
    rung,
    placement,
    reversibility,
    domain: Object.freeze({ name: domain, engine: manifest.engine, holds }),
    leaseMs,
    recovery,
  })
}
