import { z } from 'zod'
import { defineJob, type JobContext, JobError } from '../handler-api.ts'
import { childEnvironment, environment } from './shell/environment.ts'
import { type Ended, runProcess } from './shell/process.ts'
import { createGroupKeeper } from './shell/process-group.ts'
import { withWorkFolder } from './shell/work-folder.ts'

/** Of what the command wrote to stderr, in the error of an unexpected exit. */
const STDERR_CHARACTERS = 2_000

// A NUL would end the argument early.
const argument = z.string().regex(/^[^\0]*$/, 'has a NUL')

const schema = z.strictObject({
  // In one pattern: the edge reads only one of each field.
  command: z
    .string()
    .max(4096)
    .regex(/^\/[^\0]*$/, 'is not an absolute path')
    .describe('the absolute path of an executable that the operator allows'),
  args: z
    .array(argument)
    .max(1000)
    .default([])
    .describe('Handed over one by one, as they are: no shell reads them.'),
  env: environment.optional(),
  stdin: z.string().optional(),
  expected_exit_codes: z.array(z.int().min(0).max(255)).min(1).max(256).default([0]),
})

/**
 * Runs executables that the operator has named, and nothing else: no shell stands in between, the environment and the
 * folder are made for the attempt, and everything that it has started ends with it.
 */
export const createShellJob = (options: { executables: readonly string[] }) => {
  const groups = createGroupKeeper()
  const run = async (payload: z.output<typeof schema>, ctx: JobContext): Promise<ShellResult> => {
    const { command, args, env, stdin, expected_exit_codes } = payload
    requireAllowed(options.executables, command)
    const ended = await withWorkFolder(ctx.log, (folder) =>
      runProcess({ command, args, stdin, folder, env: childEnvironment(folder, ctx, env), ctx, groups }),
    )
    if (ended.exit_code === null || !expected_exit_codes.includes(ended.exit_code)) {
      throw unexpectedExit(command, ended)
    }
    return ended
  }
  return defineJob({ type: 'shell', schema, run })
}

type ShellResult = Ended

const requireAllowed = (executables: readonly string[], command: string): void => {
  if (executables.includes(command)) return
  const allowed = `The operator of this worker allows ${executables.join(', ')} (SMARTQUEUE_SHELL_ALLOW).`
  throw new JobError('not_allowed', `${command} may not be run. ${allowed}`, { permanent: true })
}

const unexpectedExit = (command: string, { exit_code, signal, stderr }: Ended): JobError => {
  const how = exit_code === null ? `was ended by ${signal}` : `ended with code ${exit_code}`
  const said = stderr.trim().slice(-STDERR_CHARACTERS)
  return new JobError('exit_code', `${command} ${how}${said && `: ${said}`}`)
}
