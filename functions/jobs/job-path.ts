import { ProblemError } from '../http/problem.ts'

export const noSuchJob = (id: string): ProblemError =>
  new ProblemError('not-found', `There is no job ${id} in this organisation.`)
