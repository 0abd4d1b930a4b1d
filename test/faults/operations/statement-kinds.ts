// Every statement that the runners send to PostgreSQL, by its kind. An unknown text fails the test that lists them.

import { commits } from '../../../src/testing/index.js'

const kinds = {
  // On a connection that was used before, BEGIN, limits and claim leave in one write, as outcome and COMMIT always do.
  BEGIN: (text) => /^BEGIN/.test(text),
  limits: (text) => /^SELECT 1 WHERE set_config/.test(text),
  claim: (text) => /^INSERT INTO \S*marker.* DO NOTHING/s.test(text),
  body: (text) => /into ledger/.test(text),
  outcome: (text) => /^INSERT INTO \S*marker.* DO UPDATE/s.test(text),
  COMMIT: (text) => commits(text),
  ROLLBACK: (text) => /^ROLLBACK/.test(text),
  read: (text) => /^SELECT .*now_ms.*marker/s.test(text),
  'who blocks': (text) => /pg_blocking_pids/.test(text),
  'who was left behind': (text) => /pg_stat_activity\s+WHERE pid = ANY/.test(text),
  'which server': (text) => /^SELECT '' AS xid/.test(text),
  'do standbys have it': (text) => /pg_logical_emit_message/.test(text),
  notes: (text) => /^SELECT .*FROM \S*audit/.test(text),
  insert: (text) => /^WITH .*INSERT INTO \S*marker/s.test(text),
  renew: (text) => updates(text) && !/fence = nextval|because = /.test(text),
  'take over': (text) => updates(text) && /fence = nextval/.test(text),
  complete: (text) => updates(text) && /expires_at_ms = clock/.test(text) && !noted(text),
  'complete with note': (text) => updates(text) && /expires_at_ms = clock/.test(text) && noted(text),
  lose: (text) => unknowns(text) && !/token = NULL/.test(text),
  'hold back': (text) => unknowns(text) && /token = NULL/.test(text) && !noted(text),
  'hold back with note': (text) => unknowns(text) && /token = NULL/.test(text) && noted(text),
  remove: (text) => removes(text) && !noted(text),
  'remove with note': (text) => removes(text) && noted(text),
  due: (text) => /SKIP LOCKED/.test(text) && !/DELETE FROM/.test(text),
} satisfies Record<string, (text: string) => boolean>

function updates(text: string): boolean {
  return /^WITH .*UPDATE \S*marker\S* SET/s.test(text) && !/SKIP LOCKED/.test(text) && !commits(text)
}

function removes(text: string): boolean {
  return /DELETE FROM \S*marker/.test(text) && !/SKIP LOCKED/.test(text)
}

function unknowns(text: string): boolean {
  return updates(text) && /because = /.test(text) && !/expires_at_ms = /.test(text)
}

function noted(text: string): boolean {
  return /INSERT INTO \S*audit/.test(text)
}

/** A kind of statement. */
export type StatementKind = keyof typeof kinds

/** All of them. */
export const statementKinds = Object.keys(kinds) as StatementKind[]

/** The predicate of a kind. */
export const isKind = (kind: StatementKind): ((text: string) => boolean) => kinds[kind]

/** The kinds that a text is of: exactly one, if this list is sound. */
export const kindsOf = (text: string): StatementKind[] => statementKinds.filter((kind) => kinds[kind](text))
