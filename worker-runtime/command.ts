import { ConfigError } from './config.ts'
import { describeError } from './describe-error.ts'

/** Something that the user can put right: told in one line, without a stack. */
export class UsageError extends Error {}

/**
 * Runs the main function of a command and exits with its code, or 1. What the user can put right is told as
 * it is; anything else with what the command was about to do.
 */
export const runCommand = (doing: string, main: () => Promise<number>): void => {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      console.error(isUsersToFix(error) ? describeError(error) : `${doing}: ${describeError(error)}`)
      process.exit(1)
    },
  )
}

const isUsersToFix = (error: unknown): boolean => {
  if (error instanceof ConfigError || error instanceof UsageError) return true
  const { code } = error as { code?: string }
  return code?.startsWith('ERR_PARSE_ARGS') ?? false
}

/** The value of an option, within bounds. */
export const numberOf = (name: string, text: string, min: number, max: number): number => {
  const value = Number(text)
  if (text.trim() !== '' && value >= min && value <= max) return value
  throw new UsageError(`--${name} must be a number from ${min} to ${max}.`)
}

export const wholeNumberOf = (name: string, text: string, min: number, max: number): number => {
  const value = numberOf(name, text, min, max)
  if (Number.isInteger(value)) return value
  throw new UsageError(`--${name} must be a whole number from ${min} to ${max}.`)
}
