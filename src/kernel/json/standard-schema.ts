// The part of Standard Schema 1 (standardschema.dev) that checks a value: libraries such as Zod, Valibot and ArkType
// have it, and none of them is needed here.

/** Something that checks values: any schema with the `~standard` interface. `Output` is what it makes of them. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    /** The library. */
    readonly vendor: string
    /** Checks a value, at once or later. */
    validate(value: unknown): SchemaResult<Output> | PromiseLike<SchemaResult<Output>>
  }
}

/** The answer of a schema: the value as the schema gives it back, or what is wrong with it. */
export type SchemaResult<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** What is wrong with a value, and where. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** Whether something has the `~standard` interface. A schema may be a function, as those of ArkType are. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  return typeof Object(Object(value)['~standard']).validate === 'function'
}

/** Where an issue is, as a JSON Pointer (RFC 6901); an empty text is the whole value. */
export function issuePointer({ path = [] }: SchemaIssue): string {
  const parts = path.map((part) => String(typeof part === 'object' ? part.key : part))
  return parts.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
