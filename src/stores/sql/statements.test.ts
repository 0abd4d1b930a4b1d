import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { postgresDialect, type SqlDialect, sqliteDialect, statementsOf, transactionStatementIn } from './index.js'
import { refuseTransactionStatements, writeIn } from './statements.js'

const found = (text: string, dialect: SqlDialect = postgresDialect) => transactionStatementIn(text, dialect)

describe('splitting', () => {
  it('splits at semicolons outside of quotes and comments', () => {
    const text = `select ';' ; ; insert into "a;b" values (E'\\';', $$;$$, $x$ ; $$ $x$) -- ;\n ; /* ; /* ; */ ; */ delete from t`
    expect(statementsOf(text, postgresDialect).map(({ words }) => words[0])).toEqual(['select', 'insert', 'delete'])
  })

  it('gives each statement as it was written, without what surrounds it', () => {
    expect(statementsOf(' /* a */ select 1 /* b */ ; -- c', postgresDialect)).toEqual([
      { text: 'select 1', words: ['select'] },
    ])
  })

  it('knows the three quotings of names in SQLite, and that comments do not nest there', () => {
    const text = 'select [a;b], `c;``d`, "e;""f" ; /* /* ; */ delete from t'
    expect(statementsOf(text, sqliteDialect).map(({ words }) => words[0])).toEqual(['select', 'delete'])
  })
})

describe('statements that begin or end a transaction', () => {
  it.each([
    'begin',
    'BEGIN ISOLATION LEVEL SERIALIZABLE',
    'start transaction',
    'commit',
    'Commit And Chain',
    'END',
    'rollback to x',
    'abort work',
    'savepoint a',
    'release a',
    "prepare transaction 'x'",
    "commit prepared 'x'",
    "rollback prepared 'x'",
    'select 1; commit',
    ';;commit',
    '/* harmless */ commit',
    '-- harmless\ncommit',
    '--\rcommit',
    '/* /* */ */commit',
    "select E'\\''; commit; --'",
    "select E'a'\n'\\''; commit; select ''",
    "select 'a''b'; commit; --'",
    "select $$ ' $$; commit; --'",
    'select $a$ $b$ $a$; commit; --$a$',
    'select a$b$; commit; --$b$',
    'select 1 as "a""b"; commit; --"',
    'select $1$q$ ; $q$; commit',
    "create function begin() returns int language sql as 'select 1'; end",
    'create function f(begin atomic) returns int return 1; end',
    'create function f() returns void begin atomic end; end',
    'create function f() returns int begin atomic select 1; end; end',
    // With standard_conforming_strings off the first string ends later, and a statement appears.
    "select '\\'; commit; select ''",
    "select '\\', '; commit; --'",
  ])('are found: %s', (text) => {
    expect(found(text)).toBeDefined()
  })

  it.each([
    "select 'commit'",
    "insert into t values ('; commit;')",
    'select 1 as "commit; begin"',
    'select $$; commit;$$',
    'select $x$; commit; $$; commit $x$',
    'select 1 -- ; commit',
    'select 1 /* ; commit /* ; */ ; commit */',
    "select E'\\'; commit; --'",
    "select E'a'\n'\\'; commit; --'",
    "select E'a' -- b\n\n'\\'; commit; --'",
    'select committed, beginning from endings',
    'update t set a = case when b then c end',
    'prepare p as select 1',
    'set transaction read only',
    'create function f() returns int begin atomic select 1; select case when true then 1 end; end',
    'create or replace procedure p() begin atomic insert into t values (1); end; select 1',
    'do $$ begin perform 1; end $$',
    "comment on table t is 'start transaction'",
    'select "begin" from t; select [1]',
  ])('are not found where there is none: %s', (text) => {
    expect(found(text)).toBeUndefined()
  })

  it.each([
    'begin immediate',
    'commit',
    'end transaction',
    'savepoint a',
    'release a',
    "attach 'x' as y",
    'detach y',
    'pragma journal_mode = delete',
    'pragma main.synchronous(off)',
    'PRAGMA locking_mode=EXCLUSIVE',
    '\ufeffcommit',
    "select $a('); commit; --'",
    "select $a(\u00a0'); commit; --'",
    "select :a::b('); commit; --'",
    '/* /* */ commit',
    'select "a""b`c"; commit',
    'create trigger t after insert on x begin select 1; end; end',
  ])('are found in SQLite: %s', (text) => {
    expect(found(text, sqliteDialect)).toBeDefined()
  })

  it.each([
    "select '; commit;'",
    'select [; commit]',
    'select `; commit`',
    'pragma table_info(t)',
    'create temp trigger t after insert on x begin insert into y values (1); update z set a = 1; end',
    'select 1 /* ; commit',
    'explain commit',
  ])('are not found in SQLite where there is none: %s', (text) => {
    expect(found(text, sqliteDialect)).toBeUndefined()
  })

  it('are refused by name, without the text', () => {
    expect(() => refuseTransactionStatements('commit; select secret', postgresDialect)).toThrow(
      expect.objectContaining({ code: 'TRANSACTION_STATEMENT', details: { statement: 'commit' } }),
    )
    expect(() => refuseTransactionStatements('commit; select secret', postgresDialect)).toThrow(/^(?!.*secret)/)
  })

  it('does not read a long text through for words that only hold a keyword', () => {
    const long = `insert into t (pending, "starts", committed_at) values ${'(1, 2, 3), '.repeat(450_000)} (1, 2, 3)`
    const before = process.cpuUsage()
    for (const dialect of [postgresDialect, sqliteDialect]) expect(found(long, dialect)).toBeUndefined()
    // Reading its two million tokens takes most of a second, twice.
    const { user } = process.cpuUsage(before)
    expect(user).toBeLessThan(400_000)
    expect(found(`${long}; commit`)).toBe('commit')
  })

  it('reads a literal of ten megabytes without running out of stack', () => {
    const long = 'commit;'.repeat(1_500_000)
    expect(found(`select '${long}', E'${long}', $$${long}$$, "${long}" /* ${long} */ -- ${long}`)).toBeUndefined()
    expect(found(`select '${long}'; commit`)).toBe('commit')
  })
})

// Every text that follows is made of pieces whose meaning is known, so the right answer is too.
const blank = fc.constantFrom(
  ' ',
  '\n',
  '\t',
  '/* commit; */',
  '/* /* begin */ ; */',
  '-- end;\n',
  "/* ' */",
  '-- $$ "\n',
)
const quoted = fc.constantFrom(
  "'commit'",
  "'it''s; rollback;'",
  '"begin; commit"',
  '$$; commit; $$',
  "$q$ ' ; end; $q$",
  "'; -- begin'",
  "'/* '",
  '"*/ ; abort"',
)
const harmless = fc
  .tuple(
    fc.constantFrom('select', 'insert into t values', 'update t set a =', 'with x as'),
    fc.array(fc.oneof(quoted, blank), { maxLength: 5 }),
  )
  .map(([head, parts]) => `${head} ${parts.join(' , ')}`)
const anyCase = (word: string) =>
  fc
    .array(fc.boolean(), { minLength: word.length, maxLength: word.length })
    .map((upper) => [...word].map((letter, place) => (upper[place] ? letter.toUpperCase() : letter)).join(''))
const forbidden = fc
  .constantFrom('begin', 'commit', 'end', 'rollback', 'abort', 'savepoint x', 'release x', 'start/**/transaction')
  .chain(anyCase)
const gaps = fc.array(blank, { maxLength: 3 }).map((parts) => parts.join(''))

property(
  'no comment and no quoting hides a statement',
  [fc.array(harmless, { maxLength: 3 }), gaps, forbidden, gaps, fc.array(harmless, { maxLength: 2 })],
  (before, gap, bad, after, rest) => {
    const text = [...before, `${gap}${bad}${after}`, ...rest].join(';')
    expect(found(text)).toBeDefined()
  },
)

property(
  'words in strings, names and comments are no statements',
  [fc.array(fc.tuple(gaps, harmless, gaps), { maxLength: 4 })],
  (parts) => {
    expect(found(parts.map((part) => part.join('')).join(';'))).toBeUndefined()
  },
)

describe('what writes', () => {
  it.each([
    ['insert into a values (1)', 'insert'],
    ['/* select */ UPDATE a SET b = 1', 'update'],
    ["select 'x'; delete from a", 'delete'],
    ['with a as (select 1) insert into b select * from a', 'insert'],
    ['with a as (delete from b returning *) select * from a', 'delete'],
    ['explain (analyze, costs off) update a set b = 1', 'update'],
    ['begin; truncate a', 'truncate'],
    ['copy a from stdin', 'copy'],
    ['do $$ begin end $$', 'do'],
    ['select 1 as a into gx', 'select into'],
    ['(SELECT * INTO TEMP gx FROM a)', 'select into'],
    ['with a as (select 1) select * into b from a', 'select into'],
    ['explain analyze select 1 into gx', 'select into'],
    ['select 1; select 2 into gx', 'select into'],
  ])('%s: %s', (text, kind) => {
    expect(writeIn(text, postgresDialect)).toBe(kind)
  })

  it.each([
    '',
    '(;)',
    "select 'insert into a'",
    '(select 1) union select 2',
    'with a as (select * from b for no key update) select * from a for update',
    'explain insert into a values (1)',
    'explain select 1 into gx',
    'select \'into\', "into", a.into, b as into /* into */ from a -- into',
    'select update from a',
    'begin; set local x = 1; show x; rollback',
    'copy (select * from a) to stdout',
    'values (1)',
  ])('not %s', (text) => {
    expect(writeIn(text, postgresDialect)).toBeUndefined()
  })
})

property(
  'any text can be read',
  [fc.string({ unit: fc.constantFrom(...`'"$\`[];-/*\\eE&uU \n\ta1_.(){}begincommit`) })],
  (text) => {
    for (const dialect of [postgresDialect, sqliteDialect]) {
      const statements = statementsOf(text, dialect)
      expect(statements.every((statement) => text.includes(statement.text))).toBe(true)
      transactionStatementIn(text, dialect)
      writeIn(text, dialect)
    }
  },
)
