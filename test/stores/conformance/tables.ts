// The table that conformance cases work with, in SQL that both engines read.

/** The statement that makes the table `items`. */
export const itemsTable =
  'create table items (id text primary key, state text, last_command text, version integer not null default 0, token text, amount integer not null default 0)'
