import { z } from '@hono/zod-openapi'
import { ProblemError } from '../http/problem.ts'

export const jobPath = z.object({ id: z.uuid().openapi({ param: { name: 'id', in: 'path' } }) })

export const noSuchJob = (id: string): ProblemError =>
  new ProblemError('not-found', `There is no job ${id} in this organisation.`)
