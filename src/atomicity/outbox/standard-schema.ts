// The part of Standard Schema 1 (standardschema.dev) that checks a value: libraries such as Zod, Valibot and ArkType
// have it, and none of them is needed here.

/** Something that checks values: any schema with the `~standard` interface. */
export interface MessageSchema {
  readonly '~standard': {
    readonly version: 1
    /** The library. */
    readonly vendor: string
    /** Checks a value, at once or later. Without `issues` it is sound. */
    validate(value: unknown): SchemaResult | PromiseLike<SchemaResult>
  }
}

/** The answer of a schema. */
export interface SchemaResult {
  readonly issues?: readonly SchemaIssue[] | undefined
}

/** What is wrong with a value, and where. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}
