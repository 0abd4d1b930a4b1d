// What every mount of the subject is given, and what it gives back.

import type { AtomicSubjectRoute } from './atomic-routes.js'
import type { LeasedSubjectRoute } from './leased-routes.js'
import type { SubjectDomain } from './ledger.js'

/** What is mounted. */
export interface Subject {
  readonly db: SubjectDomain
  readonly atomic: readonly AtomicSubjectRoute[]
  readonly leased: readonly LeasedSubjectRoute[]
  /** How many effects a user has, inside and outside. */
  effects(user: string): Promise<number>
}

/** A mounted subject that listens. */
export interface Served {
  /** Where, without a slash at the end. */
  readonly url: string
  close(): Promise<void>
}

/** Serves a subject on a free port of the loopback interface. */
export type Serve = (subject: Subject) => Promise<Served>

/** Who calls, by `Authorization: Bearer <user>`; undefined: nobody says. */
export function userOf(authorization: string | undefined): string | undefined {
  return /^Bearer ([\w-]{1,100})$/.exec(authorization ?? '')?.[1]
}
