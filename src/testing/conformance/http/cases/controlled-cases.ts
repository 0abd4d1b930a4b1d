// Cases for which the test must control the server: end or stop processes, move clocks, stop stores, change the
// configuration, read logs.

import type { ControlledHttpCase } from '../http-case.js'

/** Cases that only a test which starts the server can run. Reprise's own tests run each of them. */
export const controlledHttpCases: readonly ControlledHttpCase[] = [
  {
    id: 'http-08e',
    title: 'MUST refuse a key that is no key, and a stranger, before the store is asked',
    proves: 'a flood of nonsense costs the store nothing',
    needs: ['store'],
  },
  {
    id: 'http-52',
    title:
      'MUST recover after the process that works on a request is killed: refused until its claim is over, then decided, never before the window ends in a dead end',
    proves: 'a crash blocks a key for the length of a lease and not for a day',
    needs: ['kill'],
  },
  {
    id: 'http-54',
    title:
      'MUST reject what a process that stood still past its lease writes: repeats get the answer of whoever took over, one effect',
    proves: 'a process that wakes up cannot overwrite what was decided without it',
    needs: ['freeze'],
  },
  {
    id: 'http-57',
    title: 'MUST NOT carry out again where the effect happened and its completion could not be written',
    proves: 'a store that fails at the worst moment does not double the effect',
    needs: ['store'],
  },
  {
    id: 'http-62',
    title:
      'MUST replay until the window ends, and then do what is documented: carry out anew, or 412 for a key that says its age',
    proves: 'the end of the window is a moment, and not a matter of luck',
    needs: ['clock'],
  },
  {
    id: 'http-64',
    title: 'MUST refuse a window that is shorter than the lease or the time in which a retry may come, at start-up',
    proves: 'a configuration that cannot keep its promise does not start',
    needs: ['configuration'],
  },
  {
    id: 'http-65',
    title: 'MUST NOT purge what is under way',
    proves: 'upkeep never makes room for a second execution',
    needs: ['store'],
  },
  {
    id: 'http-71',
    title: 'MUST keep no key at rest, and no answer in the clear where it is to be encrypted',
    proves: 'a copy of the store is worth little to whoever finds it',
    needs: ['store', 'configuration'],
  },
  {
    id: 'http-74',
    title: 'MUST NOT write keys or bodies to logs and events',
    proves: 'what is searched by many holds nothing that is private',
    needs: ['logs'],
  },
  {
    id: 'http-75',
    title:
      'MUST answer 503 with Retry-After while the store is down, without the effect, and lose and double nothing when it is back',
    proves: 'without its memory the service does not guess',
    needs: ['store'],
  },
  {
    id: 'http-76',
    title: 'MUST answer in bounded time while the store is slow or locked',
    proves: 'a request never hangs on a store',
    needs: ['store'],
  },
]
