type Problem = {
  type?: string
  title: string
  detail: string
  errors?: { pointer: string; detail: string }[]
}

/** The API has said no, or nothing at all. The message is for people. */
export class Refusal extends Error {
  /** The kind of problem, such as `not-found`; empty if it is none that the API names. */
  readonly slug: string
  readonly title: string
  readonly status: number
  /** What is wrong with which field. */
  readonly errors: readonly { pointer: string; detail: string }[]
  readonly retryAfterSeconds: number | undefined

  constructor(problem: Problem, response?: { status: number; retryAfterSeconds?: number | undefined }) {
    super(problem.detail)
    this.slug = problem.type?.split('#problem-')[1] ?? ''
    this.title = problem.title
    this.status = response?.status ?? 0
    this.errors = problem.errors ?? []
    this.retryAfterSeconds = response?.retryAfterSeconds
  }
}

export const noAnswer = (): Refusal =>
  new Refusal({ title: 'The server does not answer', detail: 'Check your connection and try again.' })

export const refusalOf = async (response: Response): Promise<Refusal> => {
  const body = (await response.json().catch(() => undefined)) as Partial<Problem> | undefined
  const retryAfterSeconds = Number(response.headers.get('retry-after')) || undefined
  const title = body?.title ?? 'The server has trouble'
  const detail = body?.detail ?? `It answered with status ${response.status}. Try again in a moment.`
  return new Refusal({ ...body, title, detail }, { status: response.status, retryAfterSeconds })
}
