// A finding of a doctor: what could go wrong with a store, and what to do about it.

/** One thing that was found. */
export interface Finding {
  /** A stable name of it. */
  readonly code: string
  /** `broken`: transactions fail or promises do not hold. `risk`: they may, some day. `note`: good to know. */
  readonly severity: 'broken' | 'risk' | 'note'
  readonly what: string
  readonly fix: string
}
