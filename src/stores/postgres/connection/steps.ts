// Reprise's own statements where a batch is not taken, or its names are not: one by one, and once more.

import { signsOf } from '../classification.js'
import type { PostgresPoolClient } from '../options.js'
import { forgetPrepared, type Step, type StepAnswer } from './batch.js'
import type { KnownConnection } from './connections.js'

/**
 * As often may a backend turn out not to have what is prepared; from then on nothing has a name on its connection, and
 * is parsed each time.
 */
export const mostLost = 3

/**
 * Whether an error says that the backend does not have what was prepared, or has what it should not have: a pooler
 * changed it, or somebody threw its statements away. All of it is prepared anew then.
 */
export function isUnprepared(client: PostgresPoolClient, connection: KnownConnection, error: unknown): boolean {
  const signs = signsOf(error)
  const unprepared = signs.includes('26000') || signs.includes('42P05')
  if (unprepared) {
    connection.lost += 1
    forgetPrepared(client)
  }
  return unprepared
}

/** Sends steps one by one; each has columns of different names. */
export async function sendEach(client: PostgresPoolClient, steps: readonly Step[]): Promise<readonly StepAnswer[]> {
  const answers: StepAnswer[] = []
  for (const { statement, values } of steps) {
    if (values === undefined) continue
    const { rows, command, rowCount } = await client.query(statement.text, [...values])
    const cells = rows.map((row) => Object.values(row) as (string | null)[])
    // For a command without rows pg says null, and pg-native NaN.
    answers.push({ rows: cells, tag: Number.isInteger(rowCount) ? `${command} ${rowCount}` : command })
  }
  return answers
}

/** How many rows a step wrote or read. */
export function countOf(answer: StepAnswer | undefined): number {
  return answer === undefined ? 0 : Number(answer.tag.slice(answer.tag.lastIndexOf(' ') + 1))
}
