// Who a request is made for, as `principal` of a route says it and as its handler gets it.

/**
 * On whose behalf a request is made: one name, or several, most general first. Undefined, or no names: nobody, and the
 * request is refused with 401.
 */
export type Principal = string | readonly [string, ...string[]] | readonly string[] | undefined

/** The names of a principal, as a handler gets them: as many as `principal` returns, where its type says how many. */
export type PrincipalNames<Who extends Principal> = Principal extends Who
  ? readonly [string, ...string[]]
  : Who extends string
    ? readonly [string]
    : Who extends readonly [string, ...string[]]
      ? Readonly<Who>
      : Who extends readonly string[]
        ? readonly [string, ...string[]]
        : never
