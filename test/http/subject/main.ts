// Serves the subject as a process of its own: `main <adapter> <database url>`, the sink's folder in SUBJECT_SINK.
// Prints `ready <url>`, and ends with its input.

import { type MountName, startSubject } from './subject.js'

async function main(): Promise<void> {
  const [adapter = 'node', databaseUrl = ''] = process.argv.slice(2)
  const sink = process.env['SUBJECT_SINK']
  const { url } = await startSubject(adapter as MountName, databaseUrl, sink === undefined ? {} : { sink })
  console.log(`ready ${url}`)
  // Whoever started it may be killed; then nobody is left to stop it.
  process.stdin.resume().on('end', () => process.exit(0))
}

void main()
