export type ApiClient = {
  readonly account: { username: string; password: string }
  post<Answer>(path: string, body: object): Promise<Answer>
  get<Answer>(path: string): Promise<Answer>
}

/** A new account on a system of the benchmark's own. */
export const signUp = async (baseUrl: string, username = 'bench'): Promise<ApiClient> => {
  let token = ''
  const send = async <Answer>(method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as Answer
  }
  const account = { username, password: 'correct horse' }
  token = (await send<{ access_token: string }>('POST', '/auth/register', account)).access_token
  return { account, post: (path, body) => send('POST', path, body), get: (path) => send('GET', path) }
}

/** A new access token. */
export const logIn = async (baseUrl: string, account: ApiClient['account']): Promise<string> => {
  const response = await fetch(`${baseUrl}/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(account),
  })
  if (!response.ok) throw new Error(`/auth/login answered ${response.status}: ${await response.text()}`)
  return ((await response.json()) as { access_token: string }).access_token
}
