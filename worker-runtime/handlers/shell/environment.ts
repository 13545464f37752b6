import { z } from 'zod'
import type { JobContext } from '../../handler-api.ts'

const MAX_VARIABLES = 100

/**
 * Variables that change what is executed. With one of them the payload of a job would run anything, through the most
 * harmless executable. No list of them is complete: who allows a program that takes code from others should know it.
 */
const REFUSED = [
  // Which libraries are loaded: the linker, character sets, TLS, the C library itself.
  'LD_* DYLD_* GCONV_PATH LOCPATH NLSPATH GLIBC_TUNABLES MALLOC_* OPENSSL_*',
  // Where programs and their settings are found. HOME, TMPDIR and SMARTQUEUE_… are set here.
  'PATH CDPATH HOME TMPDIR XDG_* SMARTQUEUE_*',
  // What shells and interpreters run before, or besides, what they are told to.
  'IFS ENV SHELL SHELLOPTS PS4 PROMPT_COMMAND BASH* ZDOTDIR NODE_* NPM_* npm_* DENO_* BUN_* PYTHON* PERL* RUBY*',
  'GEM_* BUNDLE_* LUA_* PHPRC PHP_INI_* R_PROFILE* R_ENVIRON* R_LIBS* R_HOME JAVA_* _JAVA_* JDK_* CLASSPATH',
  'DOTNET_* CORECLR_* COR_* AWKPATH AWKLIBPATH TCLLIBPATH ERL_* GUILE_*',
  // Which other programs are called, and settings files that can name some.
  'EDITOR VISUAL PAGER MANPAGER BROWSER LESS* GIT_* SSH_* RSYNC_* TAR_OPTIONS MAKEFLAGS MAKEFILES GNUMAKEFLAGS',
  'GCC_* COMPILER_PATH MAGICK_* GS_* CURL_HOME WGETRC RIPGREP_CONFIG_PATH AWS_CONFIG_FILE KUBECONFIG DOCKER_*',
].flatMap((names) => names.split(' '))

const isRefused = (name: string): boolean =>
  REFUSED.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one))

/** The variables of a payload. */
export const environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/),
    z
      .string()
      .max(32_768)
      .regex(/^[^\0]*$/, 'has a NUL'),
    { error: ({ code }) => (code === 'invalid_key' ? 'is not a valid name of a variable' : undefined) },
  )
  .refine((record) => Object.keys(record).length <= MAX_VARIABLES, `at most ${MAX_VARIABLES} variables`)
  .superRefine((record, refinement) => {
    for (const name of Object.keys(record).filter(isRefused)) {
      refinement.addIssue({
        code: 'custom',
        path: [name],
        message: 'could change what is executed and cannot be set',
      })
    }
  })
  // Refinements stay out of the JSON Schema that the edge validates with; this one can be said there.
  .meta({ maxProperties: MAX_VARIABLES })

/** All that the process sees: nothing of the worker's own environment, which holds its passwords. */
export const childEnvironment = (
  folder: string,
  { jobId, attempt }: Pick<JobContext, 'jobId' | 'attempt'>,
  given: Record<string, string> = {},
): Record<string, string> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: folder,
  TMPDIR: folder,
  LANG: 'C.UTF-8',
  ...given,
  SMARTQUEUE_JOB_ID: jobId,
  SMARTQUEUE_ATTEMPT: String(attempt),
})
