import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { processIo } from './io.js'

it('reads, writes and loads files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-io-'))
  try {
    const io = processIo()
    const path = join(folder, 'a module.mjs')
    await io.writeText(path, 'export default 7\n')
    expect(await io.readText(path)).toBe('export default 7\n')
    expect(await io.importModule(path)).toMatchObject({ default: 7 })
    await expect(io.readText(join(folder, 'absent'))).rejects.toMatchObject({ code: 'ENOENT' })
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('asks whether a file can be written, and leaves it alone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-io-'))
  try {
    const io = processIo()
    const path = join(folder, 'a.svg')
    await io.checkWritable?.(path)
    expect(await readdir(folder)).toEqual([])
    await io.writeText(path, 'kept')
    await io.checkWritable?.(path)
    expect(await io.readText(path)).toBe('kept')
    await expect(io.checkWritable?.(folder)).rejects.toMatchObject({ code: 'EISDIR' })
    await expect(io.checkWritable?.(join(folder, 'absent', 'a.svg'))).rejects.toMatchObject({ code: 'ENOENT' })
    await expect(io.checkWritable?.(join(path, 'a.svg'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('hears a wish to end while a command runs, and leaves it to the process afterwards', () => {
  const before = process.listenerCount('SIGTERM')
  const io = processIo()
  const signal = io.untilEnded?.()
  expect(process.listenerCount('SIGTERM')).toBe(before + 1)
  process.emit('SIGTERM')
  expect(signal?.aborted).toBe(true)
  io.untilEnded?.()
  io.over?.()
  expect([process.listenerCount('SIGTERM'), process.listenerCount('SIGINT')]).toEqual([before, before])
})
