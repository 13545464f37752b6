import { INPUTS } from '../../db/learning/encoder.ts'
import { crownModel, listModels, type ModelRow } from '../../db/queries/models.ts'
import type { Run } from '../../db/query.ts'
import { createWeights, DEFAULT_HIDDEN, type Weights } from '../../functions/prediction/lstm/weights.ts'
import { parseWeights, serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { describeError } from '../describe-error.ts'
import type { Logger } from '../logger.ts'
import type { Version } from './tournament.ts'

export const SHAPE = { inputs: INPUTS, hidden: DEFAULT_HIDDEN, heads: 2 }

/** The first version is the same wherever it is made. */
export const SEED = 1

export type Champions = { champion: Version; former: Version | undefined }

/**
 * The champion and, if it may still win its place back, the one before. A champion that cannot be read gives way to the best
 * version that can, else to a fresh one: that knows nothing yet, and so answers the baseline. Undefined: the term is over.
 */
export const findChampion = async (options: {
  run: Run
  term: string
  logger: Logger
  newestVersion: number
}): Promise<Champions | undefined> => {
  const { run, term, logger } = options
  const rows = await run(listModels())
  const usable = rows.flatMap((row) => readVersion(row, logger) ?? [])
  const [first] = rows
  const best = usable[0]
  if (best && first?.status === 'champion' && best.version === first.version) {
    const before = rows.find(({ version, status }) => version === first.parent && status === 'retired')
    return { champion: best, former: usable.find(({ version }) => version === before?.version) }
  }
  const champion = best ?? {
    version: options.newestVersion + 1,
    weights: createWeights(SHAPE, SEED),
    trainedOn: 0,
  }
  const weights = best ? null : toBase64(serializeWeights(champion.weights))
  const [crowned] = await run(crownModel({ term, version: champion.version, weights }))
  return crowned && { champion, former: undefined }
}

const readVersion = ({ version, trained_on, weights }: ModelRow, logger: Logger): Version | undefined => {
  try {
    return { version, trainedOn: trained_on, weights: requireShape(parseWeights(fromBase64(weights ?? ''))) }
  } catch (error) {
    logger.error('model cannot be read', { version, reason: describeError(error) })
    return undefined
  }
}

/** Weights of a release whose network sees other inputs are of no use. */
const requireShape = (weights: Weights): Weights => {
  const { inputs, hidden, heads } = weights.shape
  if (inputs === SHAPE.inputs && hidden === SHAPE.hidden && heads === SHAPE.heads) return weights
  throw new Error(`The network has another shape: ${JSON.stringify(weights.shape)}`)
}

export const toBase64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

export const fromBase64 = (text: string): Uint8Array => Buffer.from(text, 'base64')
