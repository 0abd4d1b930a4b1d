// What every store must do with messages: those it emits, and those that come from brokers.

import type { ConformanceCase } from '../conformance-case.js'
import { inboxCases } from './inbox-cases.js'
import { laneCases } from './lane-cases.js'
import { letterCases } from './letter-cases.js'

/** Cases of the groups `store.lane`, `store.inbox` and `store.letter`. */
export const messageCases: readonly ConformanceCase[] = [...laneCases, ...inboxCases, ...letterCases]
