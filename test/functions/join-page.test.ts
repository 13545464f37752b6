import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { fromElsewhere, registerUser, type TestAccount } from '../support/accounts.ts'
import { launchBrowser } from '../support/browser.ts'
import { lowContrastTexts } from '../support/contrast.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'

const PASSWORD = 'correct horse battery'

let database: TestDatabase
let edge: Edge
let browser: Browser
let orgAdmin: TestAccount

before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  browser = await launchBrowser()
  orgAdmin = await registerUser(edge)
})

after(async () => {
  await browser?.close()
  await edge?.stop()
  await database?.drop()
})

test('no file of the page may run anything from elsewhere, be framed or be kept', async () => {
  for (const path of ['/join', '/join.css', '/join/main.js']) {
    const { status, headers } = await edge.request('GET', path)
    assert.equal(status, 200, path)
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/, path)
    assert.match(policy, /form-action 'none'; frame-ancestors 'none'/, path)
    assert.doesNotMatch(policy, /unsafe/)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('cache-control'), 'no-store')
  }
})

test('a new person creates an account and joins; the link is good for nobody else', async () => {
  const link = await invite()
  const { page, complaints } = await open(link)
  const password = page.getByLabel('Password', { exact: true })
  assert.equal(await password.getAttribute('autocomplete'), 'new-password')
  await fill(page, 'grace', PASSWORD)
  await page.keyboard.press('Enter')
  await seeHeading(page, 'You are in')
  assert.match(await textOf(page), /in the role user\./)
  assert.match(await textOf(page), /It is your active organisation now, and this browser is signed in\./)
  const dashboard = page.getByRole('link', { name: 'Open the dashboard' })
  assert.equal(await dashboard.getAttribute('href'), '/')
  assert.deepEqual(await sessionOf(page), { username: 'grace', role: 'user', org_id: orgAdmin.orgId })
  assert.deepEqual(await memberRole('grace'), 'user')
  assert.equal(await password.inputValue(), '')
  assert.deepEqual(await traces(page), { url: `${edge.url}/join`, cookie: '', local: 0, session: 0 })
  assert.deepEqual(complaints, [])

  const second = await open(link)
  await fill(second.page, 'heidi', PASSWORD)
  await second.page.getByRole('button', { name: 'Create account and join' }).click()
  await seeHeading(second.page, 'This invitation is not open any more')
  await second.page.getByRole('alert').getByText('Ask whoever invited you for a new link').waitFor()
  assert.deepEqual(await database.sql(`select from users where username = 'heidi'`), [])
  assert.deepEqual(await second.page.context().cookies(), [], 'who has not joined is not signed in')
  assert.deepEqual(second.complaints, ['404: /auth/register'])
})

test('a wrong password is told, what was typed stays, and the right one joins in the role of the link', async () => {
  const someone = await registerUser(edge)
  const { page, complaints } = await open(await invite('org_admin'))
  await page.getByLabel('Sign in').check()
  const password = page.getByLabel('Password', { exact: true })
  assert.equal(await password.getAttribute('autocomplete'), 'current-password')
  await fill(page, someone.username, 'not the password')
  await page.getByRole('button', { name: 'Sign in and join' }).click()
  await page.getByRole('alert').getByText('Username or password is wrong').waitFor()
  assert.equal(await page.getByLabel('Username').inputValue(), someone.username)
  assert.equal(await focused(page), 'password')
  assert.equal(await password.getAttribute('aria-invalid'), 'true')

  await page.keyboard.type(someone.password)
  await page.keyboard.press('Enter')
  await seeHeading(page, 'You are in')
  assert.match(await textOf(page), /in the role org_admin\./)
  assert.equal(await memberRole(someone.username), 'org_admin')
  assert.deepEqual(complaints, ['401: /auth/login'])
})

test('whoever has joined is told so, even if the organisation does not become the active one', async () => {
  const someone = await registerUser(edge)
  const { page, complaints } = await open(await invite())
  await page.route('**/switch', (route) => route.abort())
  await signIn(page, someone)
  await seeHeading(page, 'You are in')
  assert.match(await textOf(page), /Choose the organisation in the dashboard/)
  assert.doesNotMatch(await textOf(page), /your active organisation/)
  assert.equal(await memberRole(someone.username), 'user')
  const { username, orgId } = someone
  assert.deepEqual(await sessionOf(page), { username, role: 'org_admin', org_id: orgId }, 'the one as before')
  assert.deepEqual(complaints, ['failed: /orgs/:id/switch'])
})

test('an organisation is shown by its name, whatever that is', async () => {
  const name = '<img src=x onerror=alert(1)> & Söhne'
  const org = await edge.request('POST', '/orgs', { json: { name }, token: orgAdmin.token })
  assert.equal(org.status, 201, org.text)
  const someone = await registerUser(edge)
  const { page, complaints } = await open(await invite('user', org.body.id))
  await signIn(page, someone)
  await page.getByText(`You joined ${name} in the role`).waitFor()
  assert.deepEqual(complaints, [])
})

test('a member is told so, and the link stays open for somebody else', async () => {
  const { page } = await open(await invite())
  await signIn(page, orgAdmin)
  await page.getByRole('alert').getByText('You are a member of').waitFor()
  assert.deepEqual(await page.context().cookies(), [])
  const someone = await registerUser(edge)
  await signIn(page, someone)
  await seeHeading(page, 'You are in')
  assert.equal(await memberRole(someone.username), 'user')
})

test('a name that is taken and one that does not fit are told at their field', async () => {
  const { page, complaints } = await open(await invite())
  await fill(page, orgAdmin.username, PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('is taken. Choose another name, or sign in.').waitFor()
  assert.equal(await focused(page), 'username')
  assert.equal(await page.getByLabel('Password', { exact: true }).inputValue(), PASSWORD)

  await fill(page, '-dashing-', PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('Username must start with a letter or digit').waitFor()
  assert.equal(await focused(page), 'username')
  assert.deepEqual(complaints, ['409: /auth/register', '422: /auth/register'])
})

test('too many attempts are told with the seconds to wait', async () => {
  const headers = fromElsewhere()
  const json = { username: orgAdmin.username, password: PASSWORD }
  const statuses = []
  for (let n = 0; n < 6; n++) {
    statuses.push((await edge.request('POST', '/auth/register', { json, headers })).status)
  }
  assert.deepEqual(statuses, [409, 409, 409, 409, 409, 429])
  const { page } = await open(await invite(), { extraHTTPHeaders: headers })
  const answered = page.waitForResponse('**/auth/register')
  await fill(page, 'ivan', PASSWORD)
  await page.keyboard.press('Enter')
  const seconds = (await answered).headers()['retry-after']
  assert.match(seconds ?? '', /^\d+$/)
  await page.getByRole('alert').getByText(`Try again in ${seconds} second`).waitFor()
})

test('the button waits for the response, and the form can be sent again after a failure', async () => {
  const { page, complaints } = await open(await invite())
  const failing = Promise.withResolvers<void>()
  await page.route('**/auth/register', async (route) => {
    await failing.promise
    await route.abort()
  })
  await fill(page, 'judy', PASSWORD)
  await page.keyboard.press('Enter')
  const waiting = page.getByRole('button', { name: 'Joining…' })
  await waiting.waitFor()
  assert.ok(await waiting.isDisabled())
  assert.ok(await page.getByLabel('Sign in').isDisabled())
  failing.resolve()

  await page.getByRole('alert').getByText('The server does not answer').waitFor()
  await page.unroute('**/auth/register')
  await page.getByRole('button', { name: 'Create account and join' }).click()
  await seeHeading(page, 'You are in')
  assert.equal(await memberRole('judy'), 'user')
  assert.deepEqual(complaints, ['failed: /auth/register'])
})

test('an easily guessed password is reported at its field', async () => {
  const { page } = await open(await invite())
  await fill(page, 'kim', 'password123')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('Password is one of the most common passwords').waitFor()
  assert.equal(await focused(page), 'password')
})

test('in closed mode the page only offers sign-in', async () => {
  const { page } = await open(await invite(), {}, async (page) => {
    await page.route('**/auth/registration', (route) => route.fulfill({ json: { registration: 'closed' } }))
  })
  assert.equal(await page.getByLabel('Create an account').isVisible(), false)
  const someone = await registerUser(edge)
  await fill(page, someone.username, someone.password)
  await page.getByRole('button', { name: 'Sign in and join' }).click()
  await seeHeading(page, 'You are in')
})

test('a link without a whole token says so, and opening the whole one in the same tab helps', async () => {
  const link = await invite()
  for (const cutOff of [`${edge.url}/join`, link.replace(/\.sqi_.*/, ''), link.slice(0, -1)]) {
    const { page, complaints } = await open(cutOff)
    await seeHeading(page, 'This link has no invitation in it')
    await page.getByRole('alert').getByText('Open the whole link').waitFor()
    assert.equal(await page.locator('form').isVisible(), false)
    assert.equal(page.url(), `${edge.url}/join`)

    // Only the hash changes, which loads nothing by itself.
    await page.evaluate(`location.href = '${link}'`)
    await seeHeading(page, 'Join an organisation')
    await page.waitForURL(`${edge.url}/join`)
    assert.deepEqual(complaints, [])
  }
})

test('all of it works with the keyboard alone, and a password can be looked at', async () => {
  const { page } = await open(await invite())
  const order = []
  for (let n = 0; n < 5; n++) {
    await page.keyboard.press('Tab')
    order.push(await focused(page))
  }
  assert.deepEqual(order, ['register', 'username', 'password', 'reveal', 'submit'])
  await page.getByLabel('Create an account').focus()
  await page.keyboard.press('ArrowDown')
  assert.ok(await page.getByLabel('Sign in').isChecked())
  await page.getByLabel('Show password').focus()
  await page.keyboard.press('Space')
  assert.equal(await page.locator('#password').getAttribute('type'), 'text')
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`all text is readable in ${colorScheme} colours, on a phone without scrolling sideways`, async () => {
    const options = { colorScheme, viewport: { width: 320, height: 640 } }
    const { page } = await open(await invite(), options)
    await page
      .locator('section')
      .evaluateAll((all) => all.map((section) => section.removeAttribute('hidden')))
    await page.getByLabel('Sign in').check()
    await fill(page, 'nobody', 'not the password')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('Username or password is wrong').waitFor()
    assert.deepEqual(await lowContrastTexts(page), [])
    assert.equal(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0)
  })
}

const invite = async (role = 'user', orgId = orgAdmin.orgId): Promise<string> => {
  const { status, body, text } = await edge.request('POST', `/orgs/${orgId}/invite`, {
    json: { role },
    token: orgAdmin.token,
  })
  assert.equal(status, 201, text)
  return body.url
}

/** A fresh browser profile on the page, and what it complains about from then on. */
const open = async (
  link: string,
  options: BrowserContextOptions = {},
  prepare = async (_page: Page): Promise<void> => {},
): Promise<{ page: Page; complaints: string[] }> => {
  const context = await browser.newContext({ extraHTTPHeaders: fromElsewhere(), ...options })
  const page = await context.newPage()
  const complaints: string[] = []
  const pathOf = (url: string) => new URL(url).pathname.replace(/[0-9a-f-]{36}/, ':id')
  page.on('console', (message) => {
    // The browser reports violations of the content security policy here, too. Answers of 400 and more, and
    // none, come again below, with their path.
    if (message.text().startsWith('Failed to load resource')) return
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('dialog', (dialog) => complaints.push(dialog.message()))
  page.on('requestfailed', (request) => complaints.push(`failed: ${pathOf(request.url())}`))
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${pathOf(response.url())}`)
  })
  await prepare(page)
  await page.goto(link)
  await page.locator('main > section:visible').waitFor()
  return { page, complaints }
}

const fill = async (page: Page, username: string, password: string): Promise<void> => {
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
}

const signIn = async (page: Page, { username, password }: TestAccount): Promise<void> => {
  await page.getByLabel('Sign in').check()
  await fill(page, username, password)
  await page.getByRole('button', { name: 'Sign in and join' }).click()
}

/** The heading that is shown has the focus, so that what follows is read out. */
const seeHeading = async (page: Page, name: string): Promise<void> => {
  await page.getByRole('heading', { name, exact: true }).waitFor()
  assert.equal(await page.evaluate('document.activeElement.textContent'), name)
}

const textOf = (page: Page): Promise<string> => page.locator('main').innerText()

const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement.id')

/** Where a token could have been left behind. */
const traces = (page: Page): Promise<unknown> =>
  page.evaluate(`({
    url: location.href,
    cookie: document.cookie,
    local: localStorage.length,
    session: sessionStorage.length,
  })`)

/** Whom the browser is signed in as, and where: what its cookie is worth, which no script of the page can read. */
const sessionOf = async (page: Page): Promise<unknown> => {
  const cookies = await page.context().cookies()
  assert.deepEqual(
    cookies.map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path })),
    [{ name: 'smartqueue_session', httpOnly: true, sameSite: 'Strict', path: '/auth' }],
  )
  const answer = await page.evaluate(`fetch('/auth/refresh', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'smartqueue-session': 'cookie' },
    body: '{}',
  }).then((response) => response.json())`)
  const { username, role, org_id } = (answer as { user: Record<string, string> }).user
  return { username, role, org_id }
}

const memberRole = async (username: string): Promise<string | undefined> => {
  const { status, body, text } = await edge.request('GET', '/orgs/me/members', { token: orgAdmin.token })
  assert.equal(status, 200, text)
  return body.items.find((member: { username: string }) => member.username === username)?.role
}
