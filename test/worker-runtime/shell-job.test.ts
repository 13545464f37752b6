import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { type JobContext, JobError } from '../../worker-runtime/handler-api.ts'
import { createShellJob } from '../../worker-runtime/handlers/shell.ts'
import { describePayload } from '../../worker-runtime/payload-schema.ts'
import { waitFor } from '../support/wait-for.ts'

const NODE = process.execPath
const SH = '/bin/sh'
const ENV = '/usr/bin/env'
const shellJob = createShellJob({ executables: [NODE, SH, ENV] })

type Payload = z.input<typeof shellJob.schema>
type Result = {
  exit_code: number
  signal: string | null
  stdout: string
  stderr: string
  truncated: boolean
  duration_ms: number
}
type Line = [level: string, message: string]

/** The handler, run the way the executor does. */
const start = (payload: Payload) => {
  const controller = new AbortController()
  const lines: Line[] = []
  const at = (level: string) => (message: string) => void lines.push([level, message])
  const ctx = {
    jobId: 'the-job',
    attempt: 2,
    signal: controller.signal,
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
  } as unknown as JobContext
  const result = shellJob.run(shellJob.schema.parse(payload), ctx) as Promise<Result>
  /** What the process itself has said, without the two lines about it. */
  const said = () => lines.slice(1, -1)
  return { result, lines, said, abort: (reason = new Error('stop')) => controller.abort(reason) }
}
const run = (payload: Payload): Promise<Result> => start(payload).result
/** A script for Node itself: the one program that every machine with these tests has. */
const script = (code: string, more: Partial<Payload> = {}): Payload => ({
  command: NODE,
  args: ['-e', code],
  ...more,
})
const failure = (code: string, permanent: boolean, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof JobError, String(error))
  assert.deepEqual([error.code, error.permanent], [code, permanent])
  assert.match(error.message, message)
  return true
}
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // Ended, and not yet reaped by whoever adopted it.
  const stat = `/proc/${pid}/stat`
  return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, 'utf8'))
}

describe('a shell job', () => {
  it('runs an allowed executable and keeps how it ended', async () => {
    const result = await run(script('console.log("out"); console.error("err")'))
    const { duration_ms, ...rest } = result
    assert.deepEqual(rest, { exit_code: 0, signal: null, stdout: 'out\n', stderr: 'err\n', truncated: false })
    assert.ok(Number.isInteger(duration_ms) && duration_ms >= 0)
  })

  for (const command of ['/bin/ls', '/usr/bin/../bin/env', '/bin/sh -c id']) {
    it(`does not run ${command}, which nobody allowed, and says what is`, async () => {
      await assert.rejects(
        run({ command }),
        failure(
          'not_allowed',
          true,
          /may not be run\. .*\/bin\/sh, \/usr\/bin\/env \(SMARTQUEUE_SHELL_ALLOW\)/,
        ),
      )
    })
  }

  it('hands arguments over as they are: no shell reads them', async () => {
    const args = [
      '$(id)',
      '; ls',
      '`id`',
      '| cat',
      '&& id',
      '*',
      '"',
      "'",
      '\\',
      '$HOME',
      'a b',
      '',
      '-',
      'ü\n',
    ]
    const { stdout } = await run({
      command: NODE,
      args: ['-p', 'JSON.stringify(process.argv.slice(1))', '--', ...args],
    })
    assert.deepEqual(JSON.parse(stdout), args)
  })

  it('has a clean environment: nothing of the worker', async () => {
    process.env.SECRET_OF_THE_WORKER = 'x'
    const { stdout } = await run({ command: ENV, env: { COLOUR: 'red', LANG: 'de_DE.UTF-8' } })
    delete process.env.SECRET_OF_THE_WORKER
    const variables = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('=')),
    )
    const { HOME, TMPDIR, ...rest } = variables
    assert.match(HOME, /\/smartqueue-shell-\w+$/)
    assert.equal(TMPDIR, HOME)
    assert.deepEqual(rest, {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      LANG: 'de_DE.UTF-8',
      COLOUR: 'red',
      SMARTQUEUE_JOB_ID: 'the-job',
      SMARTQUEUE_ATTEMPT: '2',
    })
  })

  it('works in a folder of its own, which is removed, locked folders in it too', async () => {
    const code = `
      const fs = require('node:fs')
      fs.mkdirSync('locked/deep', { recursive: true })
      fs.writeFileSync('locked/deep/file', 'x')
      fs.symlinkSync('/etc', 'link')
      fs.chmodSync('locked/deep', 0)
      fs.chmodSync('locked', 0)
      const { mode } = fs.statSync('.')
      console.log(JSON.stringify([process.cwd(), process.env.HOME, (mode & 0o777).toString(8)]))`
    const [cwd, home, mode] = JSON.parse((await run(script(code))).stdout)
    assert.equal(mode, '700')
    assert.ok(cwd.endsWith(home))
    assert.ok(!existsSync(cwd) && existsSync('/etc/passwd'))
    const failed = start(script('console.log(process.cwd()); process.kill(process.pid, "SIGSEGV")'))
    await assert.rejects(failed.result, failure('exit_code', false, /was ended by SIGSEGV$/))
    assert.ok(!existsSync(failed.said()[0]?.[1] ?? '/'), 'also after a crash')
  })

  it('reads what it is given, or nothing', async () => {
    const cat = 'process.stdin.pipe(process.stdout)'
    assert.equal((await run(script(cat, { stdin: 'grüße\n' }))).stdout, 'grüße\n')
    assert.equal((await run(script(cat))).stdout, '')
    assert.equal((await run(script('', { stdin: 'x'.repeat(200_000) }))).exit_code, 0, 'it need not read it')
  })

  it('fails for a retry, with the end of stderr, if its exit is not expected', async () => {
    const code = 'console.error("a".repeat(5000) + "\\nthe reason"); process.exit(3)'
    await assert.rejects(
      run(script(code)),
      failure('exit_code', false, / ended with code 3: a+\nthe reason$/),
    )
    await assert.rejects(run(script('process.exit(7)')), failure('exit_code', false, /ended with code 7$/))
    const expected = { expected_exit_codes: [0, 3] }
    assert.equal((await run(script('process.exit(3)', expected))).exit_code, 3)
    await assert.rejects(
      run(script('', { expected_exit_codes: [1] })),
      failure('exit_code', false, /code 0$/),
    )
  })

  it('that cannot be started fails for a retry, and for good if it never can be', async () => {
    const missing = createShellJob({ executables: ['/nowhere/at/all'] })
    const ctx = { signal: new AbortController().signal, log: {} } as unknown as JobContext
    const payload = missing.schema.parse({ command: '/nowhere/at/all' })
    await assert.rejects(
      missing.run(payload, ctx),
      failure('not_started', false, /could not be started: ENOENT/),
    )
    const args = ['-e', '', 'x'.repeat(200_000)]
    await assert.rejects(run({ command: NODE, args }), failure('not_started', true, /E2BIG/))
  })
})

describe('the output of a shell job', () => {
  it('goes to the log line by line: stdout as info, stderr as warnings', async () => {
    const code = `
      process.stdout.write('one\\ntw')
      process.stdout.write('o\\r\\n\\n\\x1b[31mred\\x1b[0m\\n10%\\r20%\\rno newline')
      process.stderr.write('careful\\n')`
    const job = start(script(code))
    await job.result
    const of = (level: string) =>
      job
        .said()
        .filter(([at]) => at === level)
        .map(([, message]) => message)
    assert.deepEqual(of('info'), ['one', 'two', 'red', '10%', '20%', 'no newline'])
    assert.deepEqual(of('warn'), ['careful'])
    assert.match(job.lines[0]?.[1] ?? '', /runs as process \d+ with 2 arguments$/)
    assert.match(job.lines.at(-1)?.[1] ?? '', /^it ended with code 0 after \d+ ms$/)
  })

  it('is logged while it runs', async () => {
    const job = start(script('console.log("early"); process.stdin.resume(); setInterval(() => {}, 1000)'))
    await waitFor('the line', () => job.lines.some(([, message]) => message === 'early'))
    job.abort()
    await assert.rejects(job.result)
  })

  it('has lines cut at 8 KiB, and says so once', async () => {
    const code = `for (const letter of 'ab') console.log(letter.repeat(8 * 1024) + '…'); console.log('ü'.repeat(5000))`
    const job = start(script(code))
    await job.result
    assert.deepEqual(
      job.said().map(([, message]) => message),
      ['a'.repeat(8192), 'Lines are cut after 8 KiB.', 'b'.repeat(8192), 'ü'.repeat(4096)],
    )
  })

  it('is logged up to 1 MiB; the result has the last 64 KiB of each stream', async () => {
    const code = `
      const line = 'x'.repeat(1023) + '\\n'
      for (let n = 0; n < 3000; n++) process.stdout.write(line)
      process.stdout.write('€'.repeat(30_000) + 'the end')`
    const job = start(script(code))
    const { stdout, stderr, truncated } = await job.result
    assert.deepEqual([stderr, truncated], ['', true])
    assert.ok(Buffer.byteLength(stdout) <= 64 * 1024 && Buffer.byteLength(stdout) > 64 * 1024 - 3)
    assert.match(stdout, /^€+the end$/)
    const logged = job.said()
    assert.equal(logged.filter(([, message]) => message.startsWith('x')).length, 1024)
    assert.deepEqual(
      logged
        .filter(([, message]) => !message.startsWith('x'))
        .map(([level, message]) => [level, message.slice(0, 31)]),
      [['warn', 'The output is longer than 1 MiB']],
    )
  })

  it('may be anything: bytes that are no text do no harm', async () => {
    const code = `process.stdout.write(Buffer.from([0, 1, 0xff, 0xfe, 0xc3, 10, 0xed, 0xa0, 0x80]))`
    const { stdout } = await run(script(code))
    assert.equal(stdout, '\0\x01\ufffd\ufffd\ufffd\n\ufffd\ufffd\ufffd')
  })
})

describe('what a shell job has started', () => {
  const untilGone = (pids: number[]) => waitFor(`the end of ${pids}`, () => !pids.some(isAlive), 5_000)
  const pidOf = ({ lines }: ReturnType<typeof start>): number =>
    Number(/ as process (\d+) /.exec(lines[0]?.[1] ?? '')?.[1])

  it('ends with it: grandchildren too', async () => {
    const job = start({ command: SH, args: ['-c', `${SH} -c 'sleep 60 & echo $!; wait' & echo $!; wait`] })
    await waitFor('their pids', () => job.lines.length === 3)
    const pids = [pidOf(job), ...job.lines.slice(1).map(([, message]) => Number(message))]
    assert.ok(pids.every(isAlive), String(pids))
    const reason = new Error('cancelled')
    const abortedAt = performance.now()
    job.abort(reason)
    await assert.rejects(job.result, (error) => error === reason)
    assert.ok(performance.now() - abortedAt < 1_500, 'SIGTERM was enough')
    await untilGone(pids)
  })

  it('is killed after two seconds if it ignores SIGTERM', async () => {
    const job = start(
      script(
        'process.on("SIGTERM", () => console.log("no")); console.log("up"); setInterval(() => {}, 1000)',
      ),
    )
    await waitFor('it to run', () => job.lines.some(([, message]) => message === 'up'))
    job.abort()
    await assert.rejects(job.result, /stop/)
    assert.ok(
      job.lines.some(([, message]) => message === 'no'),
      'it was asked first',
    )
    assert.ok(!isAlive(pidOf(job)))
  })

  it('does not outlive it in the background, nor hold it up', async () => {
    const startedAt = performance.now()
    const job = start({ command: SH, args: ['-c', 'sleep 60 & echo $!; exit 0'] })
    const { stdout } = await job.result
    assert.ok(performance.now() - startedAt < 5_000)
    await untilGone([Number(stdout)])
  })

  it('is not waited for if it has left the group and holds the output open', async () => {
    const code = `
      const { spawn } = require('node:child_process')
      const child = spawn('/bin/sleep', ['60'], { detached: true, stdio: 'inherit' })
      console.log(child.pid)
      child.unref()`
    const { stdout } = await run(script(code))
    process.kill(Number(stdout), 'SIGKILL')
  })

  it('is never started if the attempt is over already', async () => {
    const controller = new AbortController()
    controller.abort(new Error('too late'))
    const log = () => assert.fail('it ran')
    const ctx = { signal: controller.signal, log: { info: log, warn: log } } as unknown as JobContext
    await assert.rejects(shellJob.run(shellJob.schema.parse({ command: ENV }), ctx), /too late/)
  })
})

describe('the payload of a shell job', () => {
  const issuesOf = (payload: object): string =>
    shellJob.schema
      .safeParse(payload)
      .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('\n') ?? 'accepted'

  const refusals: [string, object, RegExp][] = [
    ['no command', {}, /^command: /],
    ['a relative command', { command: 'ls' }, /^command: is not an absolute path$/],
    ['a NUL in the command', { command: '/bin/ls\0' }, /^command: is not an absolute path$/],
    ['a NUL in an argument', { command: ENV, args: ['a\0b'] }, /^args\.0: has a NUL$/],
    ['an argument that is no text', { command: ENV, args: [1] }, /^args\.0: /],
    ['a script instead of arguments', { command: ENV, args: 'ls -l' }, /^args: /],
    ['a bad name of a variable', { command: ENV, env: { 'A=B': 'x' } }, /^env\.A=B: is not a valid name/],
    ['a NUL in a variable', { command: ENV, env: { A: '\0' } }, /^env\.A: has a NUL$/],
    ['no exit code', { command: ENV, expected_exit_codes: [] }, /^expected_exit_codes: /],
    [
      'an exit code that cannot be',
      { command: ENV, expected_exit_codes: [256] },
      /^expected_exit_codes\.0: /,
    ],
    ['an unknown field', { command: ENV, cwd: '/' }, /cwd/],
    ['a wish for a shell', { command: ENV, shell: true }, /shell/],
  ]
  for (const [what, payload, issue] of refusals) {
    it(`is refused with ${what}`, () => assert.match(issuesOf(payload), issue))
  }

  for (const name of [
    'LD_PRELOAD',
    'LD_LIBRARY_PATH',
    'DYLD_INSERT_LIBRARIES',
    'PATH',
    'HOME',
    'TMPDIR',
    'NODE_OPTIONS',
    'BASH_ENV',
    'BASH_FUNC_ls',
    'ENV',
    'PYTHONPATH',
    'PERL5OPT',
    'RUBYOPT',
    'JAVA_TOOL_OPTIONS',
    'GIT_SSH_COMMAND',
    'SMARTQUEUE_JOB_ID',
  ]) {
    it(`is refused with the variable ${name}`, () => {
      assert.equal(
        issuesOf({ command: ENV, env: { [name]: 'x' } }),
        `env.${name}: could change what is executed and cannot be set`,
      )
    })
  }

  it('is described by a JSON Schema that the edge can validate with', () => {
    const edge = z.fromJSONSchema(describePayload(shellJob.schema))
    const good = { command: ENV, args: ['a'], env: { A: 'b' }, stdin: 'c', expected_exit_codes: [0, 1] }
    assert.ok(edge.safeParse(good).success)
    for (const bad of [{ command: 'ls' }, { command: ENV, args: 'x' }, { command: ENV, cwd: '/' }]) {
      assert.ok(!edge.safeParse(bad).success, JSON.stringify(bad))
    }
  })
})
