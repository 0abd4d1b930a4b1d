// What the types say about values that are stored as JSON: whatever would come back as something else needs a codec.

/**
 * A type as JSON gives it back; `never` in the place of what it does not: bigints, symbols, functions, and so
 * everything with methods (dates, buffers, maps, instances of classes). Interfaces need no index signature. `any` and
 * `unknown` pass: what they hold is looked at when it is stored.
 */
export type JsonOf<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : Value extends bigint | symbol | ((...args: never[]) => unknown)
    ? never
    : Value extends object
      ? { [Name in keyof Value]: JsonOf<Value[Name]> }
      : Value

/** Makes a definition an error whose result JSON does not give back, unless it has a codec. */
export type Storable<Result> = [Result] extends [JsonOf<Result>] ? unknown : { readonly codec: object }

/** Makes a definition an error that does not say what is done where its effect may have happened. */
export type Recoverable =
  | { readonly recover: object }
  | { readonly reversibility: 'repeatable'; readonly recover?: undefined }

/** Makes a definition an error that keeps an input which JSON does not give back. */
export type Keepable<Input> = [Input] extends [JsonOf<Input>] ? unknown : { readonly keepInput?: false }
