import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { launchBrowser } from '../support/browser.ts'
import { lowContrastTexts } from '../support/contrast.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'

const PHONE = { width: 390, height: 844 }

let database: TestDatabase
let edge: Edge
let browser: Browser

before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  browser = await launchBrowser()
})

after(async () => {
  await browser?.close()
  await edge?.stop()
  await database?.drop()
})

test('every operation of the API document is shown, and nothing goes wrong on the way', async () => {
  const { page, complaints } = await openDocs()
  const { paths, info } = (await edge.request('GET', '/openapi.json')).body
  const operations = Object.entries<Record<string, { summary: string }>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary }]) => [summary, method.toUpperCase(), path].join(' ')),
  )
  const shown = await page
    .locator('.operation')
    .evaluateAll((sections) =>
      sections.map((section) =>
        ['h3', '.method', '.path'].map((part) => section.querySelector(part)?.textContent).join(' '),
      ),
    )
  assert.deepEqual(shown.sort(), operations.sort())
  assert.equal(await page.locator('[data-operation]').count(), operations.length)
  assert.equal(await page.title(), `${info.title} API`)
  assert.deepEqual(complaints, [])
})

test('no file of the page may run or style anything from elsewhere', async () => {
  for (const path of ['/docs', '/docs.css', '/docs/main.js']) {
    const { status, headers } = await edge.request('GET', path)
    assert.equal(status, 200, path)
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/, path)
    assert.doesNotMatch(policy, /unsafe/)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
  }
})

test('the page weighs less than 25 KB on the wire', () => {
  const root = fileURLToPath(new URL('../../functions/assets/', import.meta.url))
  const files = globSync(['docs.*', 'docs/*'], { cwd: root })
  assert.ok(files.includes('docs.html') && files.includes('docs/main.js'))
  const sizes = files.map((file) => gzipSync(readFileSync(root + file)).length)
  assert.ok(sizes.reduce((sum, size) => sum + size) < 25 * 1024)
})

test('the three steps work when pasted into a shell', { skip: !hasCurl() && 'curl is missing' }, async () => {
  await database.run(registerJobTypes([{ type: 'http', payload_schema: {} }]))
  const { page } = await openDocs()
  const steps = await page.locator('.steps code').filter({ hasText: 'curl' }).allTextContents()
  assert.equal(steps.length, 3)
  const { stdout } = await promisify(execFile)('sh', ['-euc', steps.join('\n')])
  const [session, submitted, looked] = stdout.replaceAll('}{', '}\n{').trim().split('\n').map(parse)
  assert.ok(session?.access_token)
  assert.equal(submitted?.status, 'ready')
  assert.equal(looked?.id, submitted?.id)
})

test('the copy button copies the command', async () => {
  const { page } = await openDocs({ permissions: ['clipboard-read', 'clipboard-write'] })
  const sample = page.locator('#post-jobs .samples .code').first()
  await sample.getByRole('button', { name: 'Copy' }).click()
  await sample.getByText('Copied').waitFor()
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  assert.equal(copied, await sample.locator('code').textContent())
  assert.ok(copied.startsWith(`curl -sS ${edge.url}/jobs`))
})

test('the filter narrows the operations, and a link to a hidden one brings it back', async () => {
  const { page, complaints } = await openDocs()
  const visible = () => page.locator('.operation:visible').count()
  const all = await visible()
  await page.keyboard.press('/')
  await page.keyboard.type('jobs LOGS')
  await page.getByText(`1 of ${all} operations`).waitFor()
  assert.equal(await visible(), 1)
  assert.equal(await page.locator('[data-operation]:visible').count(), 1)
  assert.ok(await page.locator('#get-jobs-id-logs').isVisible())
  assert.ok(!(await page.locator('#tag-auth').isVisible()))

  await page.evaluate("location.hash = '#post-auth-login'")
  await page.locator('#post-auth-login').waitFor()
  assert.equal(await visible(), all)
  await waitUntilInView(page, '#post-auth-login h3')

  await page.locator('#filter').fill('no such thing')
  await page.getByText(`0 of ${all} operations`).waitFor()
  await page.keyboard.press('Escape')
  assert.equal(await visible(), all)
  assert.deepEqual(complaints, [])
})

test('the type of a problem leads to its row', async () => {
  const problem = (await edge.request('GET', '/nowhere')).body
  for (const link of [problem.type, '/docs#problem-unknown-job-type']) {
    const { page } = await openDocs({}, link)
    const row = link.slice(link.indexOf('#'))
    await waitUntilInView(page, row)
    assert.equal(await page.locator(`${row}:target`).count(), 1)
    const background = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`)
    assert.notEqual(await background(row), await background('.problems tbody tr:not(:target)'))
  }
})

test('a link to a schema unfolds it', async () => {
  const { page } = await openDocs()
  await page.locator('#post-jobs .answer').first().locator('summary').click()
  await page.locator('#post-jobs .answer').first().getByRole('link', { name: 'Job' }).click()
  await waitUntilInView(page, '#schema-Job table')
  assert.ok(await page.locator('#schema-Job').getByText('max_attempts').isVisible())
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`all text is readable in ${colorScheme} colours`, async () => {
    const { page } = await openDocs({ colorScheme }, '/docs#problem-not-found')
    for (const summary of await page.locator('#post-jobs summary').all()) await summary.click()
    await page.locator('#post-jobs .unfolded').last().waitFor()
    assert.deepEqual(await lowContrastTexts(page), [])
  })
}

test('a phone shows everything without scrolling sideways, the contents behind a button', async () => {
  const { page, complaints } = await openDocs({ viewport: PHONE })
  assert.deepEqual(await overflow(page), 0)
  const contents = page.locator('#contents')
  assert.ok(!(await contents.isVisible()))
  await page.getByRole('button', { name: 'Menu' }).click()
  await contents.getByRole('link', { name: '/jobs/{id}/logs' }).click()
  await waitUntilInView(page, '#get-jobs-id-logs h3')
  assert.ok(!(await contents.isVisible()))
  assert.deepEqual(complaints, [])
})

test('headings go down one level at a time', async () => {
  const { page } = await openDocs()
  const levels = await page.locator('h1, h2, h3, h4').evaluateAll((all) => all.map((one) => +one.tagName[1]))
  assert.deepEqual([levels[0], levels.filter((level) => level === 1).length], [1, 1])
  levels.reduce((before, level) => {
    assert.ok(level <= before + 1, `h${level} after h${before}`)
    return level
  })
})

test('a document that refers to itself, is hostile and has long names is shown as text', async () => {
  const name = 'a_name_that_is_much_too_long_for_the_narrow_screen_of_a_telephone'
  const node = {
    type: 'object',
    description: '<img src=x onerror=alert(1)> [click](javascript:alert(1)) `code`',
    properties: {
      [name]: { $ref: '#/components/schemas/Node' },
      children: { type: 'array', items: { $ref: '#/components/schemas/Node' } },
      inline: { anyOf: [{ type: 'object', properties: { deep: { type: 'string' } } }, { type: 'null' }] },
    },
  }
  const looped = { $ref: '#/paths/~1loop/post/requestBody/content/application~1json/schema' }
  const body = (schema: object) => ({ content: { 'application/json': { schema } } })
  const operation = { summary: '<b>bold</b>', tags: ['<i>'], responses: { default: { description: 'Any' } } }
  const document = {
    openapi: '3.1.0',
    info: { title: '<script>alert(1)</script>', version: '1' },
    paths: {
      [`/{${name}}/${name}`]: {
        delete: { ...operation, requestBody: body({ $ref: '#/components/schemas/Node' }) },
      },
      '/loop': {
        post: { ...operation, requestBody: body({ type: 'array', items: looped, allOf: [looped] }) },
        get: { ...operation, requestBody: { $ref: '#/paths/~1loop/get/requestBody' }, deprecated: true },
      },
    },
    components: { schemas: { Node: node, Self: { allOf: [{ $ref: '#/components/schemas/Self' }] } } },
  }
  const { page, complaints } = await openDocs({ viewport: PHONE }, '/docs', async (page) => {
    await page.route('**/openapi.json', (route) => route.fulfill({ json: document }))
  })
  for (const summary of await page.locator('summary').all()) await summary.click()
  assert.equal(await page.locator('.operation').count(), 3)
  assert.ok(await page.locator('.operation .field').getByText('deep').first().isVisible())
  assert.ok(await page.getByText('<img src=x onerror=alert(1)>').first().isVisible())
  assert.equal(await page.locator('main :is(img, b, i, script, [href^=javascript])').count(), 0)
  assert.deepEqual(await overflow(page), 0)
  assert.deepEqual(complaints, [])
})

test('without the API document the page says so, and trying again helps', async () => {
  let broken = true
  const { page } = await openDocs({}, '/docs', async (page) => {
    await page.route('**/openapi.json', (route) =>
      broken ? route.fulfill({ status: 503, body: 'no' }) : route.continue(),
    )
  })
  await page.getByRole('alert').getByText('/openapi.json answered with status 503').waitFor()
  broken = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.locator('#post-jobs').waitFor()
})

/** A fresh browser profile on the page, and what the browser complains about from then on. */
const openDocs = async (
  options: BrowserContextOptions = {},
  path = '/docs',
  prepare?: (page: Page) => Promise<void>,
): Promise<{ page: Page; complaints: string[] }> => {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    // The browser reports violations of the content security policy here, too.
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('dialog', (dialog) => complaints.push(dialog.message()))
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`))
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`)
  })
  await prepare?.(page)
  await page.goto(edge.url + path)
  await page.locator('main[aria-busy=false]').waitFor()
  return { page, complaints }
}

const waitUntilInView = (page: Page, selector: string) =>
  page.waitForFunction(`(() => {
    const { top, bottom } = document.querySelector('${selector}').getBoundingClientRect()
    return bottom > 0 && top >= 0 && top < innerHeight
  })()`)

/** How many pixels the page is wider than the screen. */
const overflow = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - innerWidth')

const parse = (line: string): Record<string, unknown> => JSON.parse(line)

function hasCurl(): boolean {
  return spawnSync('curl', ['--version']).status === 0
}
