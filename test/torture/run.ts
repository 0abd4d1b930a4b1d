// `npm run torture`: what tools/torture.mjs has checked and bundled is run here, engine by engine.

import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messagingPart } from './messaging/part.js'
import { operationsPart } from './operations/part.js'
import type { Part } from './part.js'
import { torture } from './torture.js'

/** What the command was asked for. */
interface Asked {
  readonly part: string
  readonly engines: readonly string[]
  readonly seconds: number
  /** Present: until so many messages were wanted, in place of the seconds. */
  readonly messages?: number
  readonly keys?: number
  readonly seed: string
  readonly json: boolean
  readonly plant?: string
}

/** How many violations are told one by one. */
const mostTold = 10

const parts: readonly Part[] = [operationsPart, messagingPart]

async function main({ part: name, engines, seconds, messages, keys, seed, json, plant }: Asked): Promise<number> {
  const part = parts.find((known) => known.name === name)
  if (part === undefined)
    throw new Error(`There is no part ${name}; there are ${parts.map((one) => one.name).join(', ')}.`)
  if (plant !== undefined && !part.bugs.includes(plant)) {
    console.error(`There is no bug ${plant} to plant; there are ${part.bugs.join(', ')}.`)
    return 2
  }
  const say = json ? () => undefined : (line: string) => console.log(line)
  const folder = dirname(fileURLToPath(import.meta.url))
  let code = 0
  for (const engine of engines) {
    const much = messages === undefined ? `${seconds} s` : `${messages} messages`
    say(`${part.name} on ${engine} for ${much}, seed ${seed}`)
    const options = { part, engine, seconds, intents: messages, keys, seed, folder, plant, onProgress: say }
    const { report, violations } = await torture(options)
    for (const { kind, intent, says } of violations.slice(0, mostTold)) console.error(`${kind}: ${intent}: ${says}`)
    if (violations.length > 0) {
      code = 1
      const planted = plant === undefined ? '' : ` --plant ${plant}`
      const load = messages === undefined ? `--seconds ${seconds}` : `--messages ${messages}`
      const wide = keys === undefined ? '' : ` --keys ${keys}`
      const again = `npm run torture -- ${part.name} --engine ${engine} ${load}${wide} --seed ${seed}${planted}`
      console.error(`${engine}: ${violations.length} violations with the seed ${seed}; run it again: ${again}`)
    }
    console.log(JSON.stringify(report))
  }
  return code
}

main(JSON.parse(process.argv[2] ?? '{}') as Asked).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error)
    process.exit(1)
  },
)
