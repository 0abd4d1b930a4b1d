// Which operations there are: by domain, where a name stands for one definition, and in the whole process, for whoever audits it.

import { RepriseError } from '../../kernel/index.js'
import type { OperationAnswers } from '../definition.js'

/** The operations of a domain. */
export class Registry {
  readonly #answers = new Map<string, OperationAnswers>()

  constructor() {
    // Weakly: a domain that is gone takes its operations along.
    for (const known of registries) if (known.deref() === undefined) registries.delete(known)
    registries.add(new WeakRef(this))
  }

  /** Adds a definition. Refuses a name that is taken with OPERATION_DEFINED_TWICE: two bodies would share their records. */
  add(answers: OperationAnswers): void {
    if (this.#answers.has(answers.name)) {
      throw new RepriseError('OPERATION_DEFINED_TWICE', 'The domain has an operation of this name already.')
    }
    this.#answers.set(answers.name, answers)
  }

  /** The answers of all, in the order of their definition. */
  list(): readonly OperationAnswers[] {
    return [...this.#answers.values()]
  }
}

const registries = new Set<WeakRef<Registry>>()

/** The five answers of every operation that is defined in this process, of all domains that are in use, in the order of their making. */
export function operations(): readonly OperationAnswers[] {
  return [...registries].flatMap((known) => known.deref()?.list() ?? [])
}
