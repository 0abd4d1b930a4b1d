// Text that has a UTF-8 form: no half of a surrogate pair standing alone.

/** Whether every surrogate in the text is part of a pair; other text has no UTF-8 form of its own. */
export function isWellFormed(text: string): boolean {
  // ES2024 and far faster; runtimes older than it fall back to a search.
  const native = (text as { readonly isWellFormed?: () => boolean }).isWellFormed
  return typeof native === 'function' ? native.call(text) : !/\p{Surrogate}/u.test(text)
}
