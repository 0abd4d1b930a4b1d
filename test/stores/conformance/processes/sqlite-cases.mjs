// Every conformance case on SQLite, with the named driver and whatever Node runs this: prints what it runs on, then a
// line for each case.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [bundle = '', driver = '', folder = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(join(bundle, `${name}.js`)).href)
const { isSociable, sqliteWorld } = await load('sqlite-world')
const {
  emitCases,
  keyCases,
  messageCases,
  operationCases,
  recordCases,
  rowCases,
  runConformanceCase,
  sequenceCases,
  transactionCases,
} = await load('testing')
const say = (/** @type {object} */ line) => console.log(JSON.stringify(line))

const loaded = createRequire(join(folder, 'package.json'))(driver)
const Database = driver === 'node:sqlite' ? loaded.DatabaseSync : loaded
const open = (/** @type {string} */ file) => new Database(file)

const probe = open(':memory:')
const { version } = probe.prepare('select sqlite_version() as version').get()
probe.close()
say({ about: `SQLite ${version} on Node ${process.versions.node}` })

for (const subject of [
  ...transactionCases,
  ...keyCases,
  ...rowCases,
  ...recordCases,
  ...operationCases,
  ...sequenceCases,
  ...messageCases,
  ...emitCases,
]) {
  // Others write at the same time wherever that can be, so that this driver is seen to share a COMMIT too.
  const world = await sqliteWorld(open, { inCompany: isSociable(subject) })
  try {
    say({ id: subject.id, outcome: await runConformanceCase(subject, world) })
  } catch (error) {
    say({ id: subject.id, error: String(error instanceof Error ? error.stack : error) })
  } finally {
    await world.close()
  }
}
