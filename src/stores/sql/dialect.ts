// What differs between the SQL of two engines, as an object of facts and functions. Shared SQL asks the object; nobody
// asks for an engine's name.

/** How an engine writes SQL. */
export interface SqlDialect {
  /**
   * The time of the store in ms since 1970, as an SQL expression: the clock at the statement, not at the transaction's
   * begin.
   */
  readonly nowMs: string
  /** Whether `nowMs` is the same wherever it stands in one statement. */
  readonly nowIsStable: boolean
  /** The place of a parameter; positions count from 1. A type is given where the engine could not infer it. */
  placeholder(position: number, type?: 'text' | 'number'): string
  /** A name in quotes. Refuses one that cannot be quoted safely. */
  quoteName(name: string): string
  /** An INSERT that does nothing where a row with the same values in `by` is there. */
  insertNew(table: string, columns: string, source: string, by: string): string
  /** An INSERT that sets columns (there may be none) of the row with the same values in `by`, where one is there. */
  insertOrSet(table: string, columns: string, source: string, by: string, set: readonly string[]): string
  /** What makes a write answer with the rows it wrote, or an empty text where only their number is known. */
  returning(columns: string): string
  /**
   * Whether `WITH` may hold statements that write. Then a write and its answer are one statement; otherwise they are
   * several in one transaction.
   */
  readonly writesInWith: boolean
  /** Added to a SELECT: locks its rows, and leaves out those that somebody else has locked. */
  readonly skipLocked: string
  /** The column that every table has, and by which a row that was just found is had again without an index. */
  readonly rowAddress: string
  /** A condition: that what stands before it is among the rows of a SELECT that may lock them. */
  among(select: string): string
  /** The cells of a row as one text of JSON; undefined: reading single columns is as cheap. */
  jsonArray?(cells: string): string
  /**
   * What can stand in FROM, before an AS: a row for each list in a JSON array of lists, its cells in the order of the
   * columns. So any number of rows is one parameter of one text.
   */
  rowsIn(json: string, columns: Readonly<Record<string, 'text' | 'number'>>): string
  /** The number that fences off older claims: where it is kept, and how the next one is taken. */
  readonly fence: {
    /** The next number, as an expression, after `advance` has run. */
    next(fence: string): string
    /** The statement that has to run before; undefined: none. */
    advance?(fence: string): string
  }
  /** Whether an error says that a table or a column of ours is not there. */
  isMissing(signs: readonly string[], message: string): boolean
  readonly words: SqlWords
}

/** What the reader of statements needs to know of an engine's grammar. */
export interface SqlWords {
  /** What is at a position of a text, and where it ends. */
  tokenAt(text: string, at: number, backslashEscapes: boolean): FoundToken
  /** Whether a setting of the server decides if a backslash escapes in ordinary strings. */
  readonly maybeEscapes: boolean
  /** A text that this does not match holds no statement about transactions. */
  readonly hint: RegExp
  /** The first words of a statement that is refused, as they are shown; undefined: it is allowed. */
  refused(words: readonly string[]): string | undefined
  /** What CREATE can make whose body holds statements and ends with END. */
  readonly bodies: readonly string[]
  /** The words that open such a body. */
  readonly bodyBegins: readonly string[]
}

/** A piece of SQL: a word, something quoted, one character of punctuation, or what means nothing. */
export interface FoundToken {
  readonly kind: 'word' | 'quoted' | 'mark' | 'blank'
  readonly end: number
}
