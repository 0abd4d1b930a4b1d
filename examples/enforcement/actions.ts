// The command: create an enforcement action for a case. One for each case and violation code, however often it is asked
// for, and an event about it in the same commit.

import { type HttpRequest, idempotent, invalid, type NodeListener, reply } from 'reprise/http/node'
import { fullJitter } from 'reprise/retry'
import { callerMs, lockMs, longestWaitMs, mostAttempts, plan } from './plan.js'
import type { Store, Transaction } from './store.js'

/** What is asked for. */
export interface Command {
  readonly caseId: string
  readonly violationCode: string
}

/** An action that was taken: the n-th one of its case. */
export interface Action extends Command {
  readonly number: number
}

const actionTable = `create table if not exists enforcement_action (
  case_id text not null,
  violation_code text not null,
  number integer not null,
  primary key (case_id, violation_code)
)`

/** Makes the tables. */
export async function migrate({ db }: Store): Promise<void> {
  await db.migrate()
  await db.transact((tx) => tx.query(actionTable))
}

/** `POST /actions`. @param attempted Is told of each transaction that was begun for a request. */
export function actionRoute(store: Store, attempted: () => void): NodeListener {
  return idempotent<Transaction, Command>(
    store.db,
    {
      name: 'actions.create',
      principal: ({ headers }) => headers.authorization,
      parse: commandOf,
      duplicates: 'wait',
      // The plan of the two seconds.
      deadline: callerMs,
      wayBack: plan.wayBackMs,
      connectionWait: plan.poolMs,
      bodyLimit: plan.attemptMs,
      lockWait: lockMs,
      attempts: mostAttempts,
      backoff: fullJitter({ baseMs: 15, capMs: longestWaitMs }),
      // What was read decides what is written, so nobody may change it in between: one of two that meet is repeated.
      isolation: 'serializable',
    },
    async ({ tx, input }) => {
      attempted()
      const { created, action } = await createAction(store, tx, input)
      return reply(created ? 201 : 200, action)
    },
  )
}

/** Creates the action, or finds it. Runs as often as its transaction has to. */
export async function createAction(
  store: Store,
  tx: Transaction,
  { caseId, violationCode }: Command,
): Promise<{ readonly created: boolean; readonly action: Action }> {
  const counted = `select count(*) as actions from enforcement_action where case_id = ${store.placeholder(1)}`
  const { rows } = await tx.query<{ actions: unknown }>(counted, [caseId])
  const number = Number(rows[0]?.actions) + 1
  const wanted = { case_id: caseId, violation_code: violationCode, number }
  // The primary key decides, also between two requests with different keys.
  const { inserted, row } = await tx.insertOnce('enforcement_action', wanted, ['case_id', 'violation_code'])
  if (!inserted) return { created: false, action: { caseId, violationCode, number: Number(row['number']) } }
  const action = { caseId, violationCode, number }
  // Leaves with COMMIT, or not at all. A case has one event of each number.
  await tx.emit({ type: 'enforcement-action.created', subject: `case/${caseId}`, version: number, data: action })
  return { created: true, action }
}

// Called before anything is claimed, so that the refusal of a wrong shape is not remembered.
function commandOf(request: HttpRequest): Command {
  const { caseId, violationCode } = Object(request.json()) as Record<string, unknown>
  if (!isName(caseId)) throw invalid(400, 'caseId is 1 to 100 letters, digits, dots and dashes.')
  if (!isName(violationCode)) throw invalid(400, 'violationCode is 1 to 100 letters, digits, dots and dashes.')
  return { caseId, violationCode }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.-]{1,100}$/.test(value)
}
