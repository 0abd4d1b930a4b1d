// A process that serves the subject, from the line that says where it does.

import type { ChildProcess } from 'node:child_process'

/** A process that serves the subject. */
export interface Serving {
  /** Where, without a slash at the end. */
  readonly url: string
  readonly child: ChildProcess
  /** Everything that it wrote so far, behind the line that says where it serves. */
  said(): string
  /** Ends it by SIGKILL, and settles when it has ended. */
  kill(): Promise<void>
}

/** The process, as soon as it serves. */
export async function serving(child: ChildProcess): Promise<Serving> {
  let [output, errors] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', () => {
      const line = readyLine.exec(output)
      if (line?.[1] !== undefined) resolve(line[1])
    })
    void ended.then(() => reject(new Error(`The subject ended before it was ready.\n${errors}`)))
  })
  return {
    url,
    child,
    said: () => output.replace(readyLine, '') + errors,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const readyLine = /^ready (\S+)\n/m
