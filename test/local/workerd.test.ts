import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRunner, withHome } from '../support/local-runner.ts'
import { waitFor } from '../support/wait-for.ts'

const CREDENTIALS = { username: 'ada', password: 'correct horse battery' }

test('npm run dev -- --workerd serves the API, the stream and the assets without wrangler', () =>
  withHome(async (home) => {
    const runner = await startRunner(home, {}, ['--workerd'])
    try {
      assert.ok(!runner.processes().some(({ command }) => /wrangler|esbuild/.test(command)))
      await useTheApi(runner.url)
      await lookAtTheAssets(runner.url)
    } finally {
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  }))

const useTheApi = async (url: string): Promise<void> => {
  let token = ''
  const ask = async (path: string, json?: object) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const body = json && JSON.stringify(json)
    return fetch(url + path, { headers, ...(body && { method: 'POST', body }) })
  }
  const registered = await ask('/auth/register', CREDENTIALS)
  token = ((await registered.json()) as { access_token: string }).access_token
  // The stream's Durable Object is stored on disk.
  const events = await ask('/jobs/events')
  assert.equal(events.status, 200)
  const submitted = await ask('/jobs', {
    name: 'hello',
    type: 'http',
    payload: { url: `${url}/healthz` },
  })
  assert.equal(submitted.status, 201)
  const { id } = (await submitted.json()) as { id: string }
  await waitFor('the job to complete', async () => {
    const { status } = (await (await ask(`/jobs/${id}`)).json()) as { status: string }
    return status === 'completed'
  })
  await untilReceived(events, id)
}

const untilReceived = async (events: Response, text: string): Promise<void> => {
  const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader()
  for (let received = ''; !received.includes(text); ) {
    const { value, done } = (await reader?.read()) ?? { done: true }
    assert.ok(!done, `The stream ended without ${text}: ${received}`)
    received += value
  }
  await reader?.cancel()
}

const lookAtTheAssets = async (url: string): Promise<void> => {
  const ask = (path: string, headers = {}) => fetch(url + path, { headers, redirect: 'manual' })
  const dashboard = await ask('/')
  assert.match(await dashboard.text(), /<title>/)
  assert.equal(dashboard.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(dashboard.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.equal((await ask('/docs?theme=dark')).status, 200)
  const etag = dashboard.headers.get('etag') ?? ''
  assert.equal((await ask('/', { 'if-none-match': etag })).status, 304)
  const page = await ask('/docs.html')
  assert.deepEqual([page.status, page.headers.get('location')], [307, '/docs'])
  const document = await ask('/openapi.json')
  assert.match(((await document.json()) as { openapi: string }).openapi, /^3\./)
  assert.equal((await ask('/nothing.js')).status, 404)
}
