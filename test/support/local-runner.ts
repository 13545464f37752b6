import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { createTestFolder } from './folder.ts'
import { waitFor } from './wait-for.ts'

export type LocalRunner = {
  readonly url: string
  readonly pid: number
  output(): string
  /** The processes below it at this moment, with their command lines. */
  processes(): RunningProcess[]
  /** Resolves with the exit code; null if a signal ended it. */
  readonly exited: Promise<number | null>
}

export type RunningProcess = { pid: number; parent: number; command: string }

/** `npm run dev`, without npm: on a free port, with its data in `home`. Does not wait. */
export const spawnRunner = async (
  home: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
): Promise<LocalRunner> => {
  const port = env.PORT ?? String(await freePort())
  const child = spawn(process.execPath, ['worker-runtime/local/dev.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      npm_lifecycle_event: '',
      SMARTQUEUE_HTTP_ALLOW: '127.0.0.1',
      SMARTQUEUE_HOME: home,
      PORT: port,
      // How many there are must not depend on how busy the machine is, unless that is what is tested.
      SMARTQUEUE_MAX_WORKERS: '1',
      ...env,
    },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const pid = child.pid ?? 0
  return {
    url: `http://127.0.0.1:${port}`,
    pid,
    output: () => output,
    processes: () => descendants(pid),
    exited: once(child, 'exit').then(([code]) => code),
  }
}

/** As above, and waits until it says that it is ready. */
export const startRunner = async (
  home: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
): Promise<LocalRunner> => {
  const runner = await spawnRunner(home, env, args)
  let exited = false
  runner.exited.then(() => {
    exited = true
  })
  await waitFor('SmartQueue ready', () => exited || runner.output().includes('SmartQueue ready'), 60_000)
  if (exited) throw new Error(`The runner ended instead:\n${runner.output()}`)
  return runner
}

export const withHome = async (use: (home: string) => Promise<void>): Promise<void> => {
  const home = await createTestFolder()
  try {
    await use(home)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** Ended, or a zombie that nobody reaps. */
const isGone = ({ pid }: RunningProcess): boolean => !listProcesses().some((process) => process.pid === pid)

/** Waits until all of them have ended. */
export const untilAllGone = (processes: RunningProcess[]): Promise<boolean> =>
  waitFor('every process to end', () => processes.every(isGone), 30_000)

const descendants = (root: number): RunningProcess[] => {
  const all = listProcesses()
  const found: RunningProcess[] = []
  const queue = [root]
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    const children = all.filter(({ parent }) => parent === pid)
    found.push(...children)
    queue.push(...children.map((child) => child.pid))
  }
  return found
}

const listProcesses = (): RunningProcess[] => (existsSync('/proc/self/stat') ? fromProc() : fromPs())

const fromProc = (): RunningProcess[] =>
  readdirSync('/proc').flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      return state === 'Z' ? [] : [{ pid: Number(name), parent: Number(parent), command }]
    } catch {
      return []
    }
  })

const fromPs = (): RunningProcess[] =>
  spawnSync('ps', ['-axo', 'pid=,ppid=,state=,command='], { encoding: 'utf8' })
    .stdout.split('\n')
    .flatMap((line) => {
      const [, pid, parent, state, command = ''] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? []
      return pid && !state?.startsWith('Z') ? [{ pid: Number(pid), parent: Number(parent), command }] : []
    })
