import type { Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import type { JobLog } from '../../handler-api.ts'
import { createLines } from './lines.ts'
import { createTail } from './tail.ts'

/** Of both streams together. What comes after goes into the result alone. */
const MAX_LOGGED_BYTES = 1024 * 1024
const MAX_LINE_BYTES = 8 * 1024
const MAX_RESULT_BYTES = 64 * 1024

export type Output = {
  stdout: string
  stderr: string /** One of them is only the end. */
  truncated: boolean
}

/** Writes what a process says to the log of its job, line by line, and keeps the end of it for the result. */
export const followOutput = (
  streams: { stdout: Readable; stderr: Readable },
  log: JobLog,
): { read(): Output } => {
  let left = MAX_LOGGED_BYTES
  let cutBefore = false

  const follow = (stream: Readable, write: (line: string) => void) => {
    const tail = createTail(MAX_RESULT_BYTES)
    const lines = createLines(MAX_LINE_BYTES, (line, cut) => {
      const text = stripVTControlCharacters(line)
      if (text.trim() !== '') write(text)
      if (cut && !cutBefore) log.warn(`Lines are cut after ${MAX_LINE_BYTES / 1024} KiB.`)
      cutBefore ||= cut
    })
    stream.on('data', (chunk: Buffer) => {
      tail.add(chunk)
      if (left <= 0) return
      lines.add(chunk.subarray(0, left))
      left -= chunk.length
      if (left < 0) log.warn(FULL)
    })
    stream.on('close', lines.end)
    return tail
  }

  const stdout = follow(streams.stdout, log.info)
  const stderr = follow(streams.stderr, log.warn)
  return {
    read: () => ({
      stdout: stdout.text(),
      stderr: stderr.text(),
      truncated: stdout.isCut() || stderr.isCut(),
    }),
  }
}

const FULL = 'The output is longer than 1 MiB: the rest is not logged. The result has the end of it.'
