import { endGroup } from './process-group.ts'

/**
 * Outlives the local runner by a moment. Its only tie to the runner is the IPC channel: when that closes,
 * in an orderly stop or because the runner was killed, it ends the process groups it was told of, in order.
 */
export type ReaperMessage = { groups: { pid: number; signal: NodeJS.Signals; graceMs: number }[] }

let groups: ReaperMessage['groups'] = []

process.on('message', (message: ReaperMessage) => {
  groups = message.groups
})

process.on('disconnect', async () => {
  for (const group of groups) await endGroup(group)
  process.exit(0)
})

// Ctrl-C in the terminal is the runner's to handle.
process.on('SIGINT', () => {})
