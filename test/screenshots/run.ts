import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { runCommand } from '../../worker-runtime/command.ts'
import { launchBrowser } from '../support/browser.ts'
import { startRunner, withHome } from '../support/local-runner.ts'
import { SHOTS, type Shot } from './shots.ts'

const HELP = `Usage: npm run screenshots [-- options]

Runs SmartQueue and its demo, and takes a picture of each view of the dashboard, in light and in dark.

  --folder PATH  where the pictures go (docs/images)
  --seconds N    how long the demo runs before (180)
  --url URL      take them of a system where the demo has run already
  --help         print this`

const SCHEMES = ['light', 'dark'] as const
const DESK = { width: 1360, height: 900 }
const PHONE = { width: 390, height: 844 }
/** Of the demo's tenants. */
const PASSWORD = 'watch-it-learn'

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: {
      folder: { type: 'string', default: 'docs/images' },
      seconds: { type: 'string', default: '180' },
      url: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  await mkdir(values.folder, { recursive: true })
  if (values.url) await takeAll(values.url, values.folder)
  else await withHome((home) => runAndTake(home, values.folder, Number(values.seconds)))
  return 0
}

/** While the demo runs: then there is something to see of what moves. */
const runAndTake = async (home: string, folder: string, seconds: number): Promise<void> => {
  const runner = await startRunner(home)
  try {
    const args = ['worker-runtime/demo/main.ts', '--url', runner.url, '--seconds', String(seconds + 300)]
    const env = { ...process.env, SMARTQUEUE_HOME: home, PORT: new URL(runner.url).port }
    const demo = spawn(process.execPath, args, { stdio: 'inherit', env })
    const ended = once(demo, 'exit')
    const [code] = await Promise.race([ended, delay(seconds * 1_000, [null])])
    if (code !== null) throw new Error(`The demo ended with ${code}.`)
    await takeAll(runner.url, folder)
    demo.kill('SIGINT')
    await ended
  } finally {
    process.kill(runner.pid, 'SIGTERM')
    await runner.exited
  }
}

const takeAll = async (url: string, folder: string): Promise<void> => {
  const browser = await launchBrowser()
  try {
    for (const tenant of new Set(SHOTS.map((shot) => shot.tenant))) {
      const context = await newContext(browser)
      if (tenant) await signIn(context, url, tenant)
      for (const shot of SHOTS.filter((one) => one.tenant === tenant))
        await takeBoth(context, shot, { url, folder })
    }
  } finally {
    await browser.close()
  }
}

const newContext = (browser: Browser): Promise<BrowserContext> =>
  browser.newContext({
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    viewport: DESK,
    reducedMotion: 'reduce',
  })

const signIn = async (context: BrowserContext, url: string, username: string): Promise<void> => {
  const page = await context.newPage()
  await page.goto(`${url}/#/sign-in`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.close()
}

const takeBoth = async (
  context: BrowserContext,
  shot: Shot,
  { url, folder }: { url: string; folder: string },
): Promise<void> => {
  const page = await context.newPage()
  await page.setViewportSize(shot.phone ? PHONE : DESK)
  await page.goto(`${url}/${shot.hash}`)
  await settle(page)
  await shot.prepare?.(page)
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await settle(page)
    const path = join(folder, `${shot.name}-${colorScheme}.png`)
    await page.screenshot({ path })
    console.log(path)
  }
  await page.close()
}

/** Everything has loaded that was asked for, and was drawn. */
const settle = async (page: Page): Promise<void> => {
  await page.locator('h1').first().waitFor()
  await page.waitForLoadState('networkidle')
  await page
    .locator('.skeleton')
    .waitFor({ state: 'detached' })
    .catch(() => {})
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
}

runCommand('The screenshots could not be taken', main)
