// The manifest: what a domain can and cannot do, declared, so that no code depends on the name of a backend.

/** How much one transaction sees of another; the words of the SQL standard. */
export type Isolation = 'read-committed' | 'repeatable-read' | 'serializable'

/** What a store of records can do, whether it has transactions or not. */
export interface RecordManifest {
  /** The engine's name, for people and reports. Code does not branch on it. */
  readonly engine: string
  /**
   * How a duplicate can be told that its key is being worked on: `exact` names that very key, `coarse` means somebody
   * writes, `never`: it can only wait. Default `exact`: the claim of a lease is committed, and can be read.
   */
  readonly refuse?: 'exact' | 'coarse' | 'never'
  /** Who can open the same store: this process alone, processes of this machine, or of a network. */
  readonly reach: 'process' | 'machine' | 'network'
  /**
   * What survives after a write was answered: nothing but the process, a crash of the machine, or the loss of the
   * machine as configured.
   */
  readonly durability: 'process' | 'disk' | 'replicated'
  /** Whether records can be listed and counted, and notes about them be read. Default true. */
  readonly inspection?: boolean
  /** The engine's fact behind a limit, by the name of the capability. */
  readonly because: Readonly<Partial<Record<'refuse' | 'reach' | 'durability' | 'inspection', string>>>
}

/** What a domain can do. Each limit that an engine forces has its reason in `because`. */
export interface Manifest extends RecordManifest {
  /** The isolation levels on offer, the default first. */
  readonly isolation: readonly Isolation[]
  /** Whether transactions that write run side by side, or one after the other. */
  readonly writers: 'one' | 'many'
  /** Whether a transaction can be declared read-only, and a write inside it is then refused. */
  readonly readOnly: boolean
  /** Whether an error can be scoped by a savepoint, so that the transaction goes on after it. */
  readonly savepoints: boolean
  /** Whether the outcome of COMMIT can stay unknown to the one who sent it. */
  readonly commit: 'certain' | 'ambiguous'
  /** Whether the outcome of a transaction without a key can be found out afterwards. */
  readonly resolvesUnkeyed: boolean
  /** What waits for a locked row: nobody can lock one, the whole store is locked, or the row alone. */
  readonly rowLock: 'store' | 'row'
  /** Whether a lock time-out can say who blocks whom. */
  readonly lockReport: boolean
  /** Whether relays and consumers can read messages from it; otherwise transactions only emit them. Default true. */
  readonly lanes?: boolean
  readonly refuse: 'exact' | 'coarse' | 'never'
  /** The engine's fact behind a limit, by the name of the capability. */
  readonly because: Readonly<Partial<Record<Capability, string>>>
}

/** The name of a capability. */
export type Capability = Exclude<keyof Manifest, 'engine' | 'because'>
