// What is proven: a call, how its world is opened and closed, and the input of an intent.

/** Where a world lives. */
export interface ProofPlace {
  /** The PostgreSQL to use, given where the option `postgres` is: its address behind a proxy that cuts connections. */
  readonly databaseUrl?: string
}

/** What a proof calls. A module that exports these can be run in processes of its own. */
export interface ProofSubject<Input, World> {
  /** Makes one call of an intent: runs an operation, sends a request to a route, or delivers a message. */
  readonly operation: (input: Input, world: World) => unknown
  /** Opens what the call works on. Its `close()`, where it has one, ends it. Default: nothing is opened. */
  readonly world?: (place: ProofPlace) => World | PromiseLike<World>
  /** The input of an intent. Its key has to follow from the id: the same id is the same intent, another id another. */
  readonly input: (id: string) => Input
}

/** Closes a world that has a way to. */
export async function closeWorld(world: unknown): Promise<void> {
  const { close } = Object(world) as { readonly close?: unknown }
  if (typeof close === 'function') await close.call(world)
}
