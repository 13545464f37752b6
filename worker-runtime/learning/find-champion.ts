import { crownModel, listModels, type ModelRow } from '../../db/queries/models.ts'
import type { Run } from '../../db/query.ts'
import { createWeights, DEFAULT_HIDDEN, type Weights } from '../../functions/prediction/lstm/weights.ts'
import { parseWeights, serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
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
  for (const row of rows) {
    const champion = readVersion(row, (reason) =>
      logger.error('model cannot be read', { version: row.version, reason }),
    )
    if (!champion) continue
    if (row.status === 'champion') return { champion, former: findFormer(rows, row) }
    return crown({ term, version: row.version, weights: null }, champion, run)
  }
  const champion = {
    version: options.newestVersion + 1,
    weights: createWeights(SHAPE, SEED),
    trainedOn: 0,
    onlyOrg: null,
  }
  const weights = toBase64(serializeWeights(champion.weights))
  return crown({ term, version: champion.version, weights }, champion, run)
}

const crown = async (
  row: Parameters<typeof crownModel>[0],
  champion: Version,
  run: Run,
): Promise<Champions | undefined> => {
  const [crowned] = await run(crownModel(row))
  return crowned && { champion, former: undefined }
}

const findFormer = (rows: readonly ModelRow[], { parent }: ModelRow): Version | undefined => {
  const row = rows.find(({ version, status }) => version === parent && status === 'retired')
  return row && readVersion(row, () => {})
}

const readVersion = (
  { version, trained_on: trainedOn, only_org: onlyOrg, weights }: ModelRow,
  onUnreadable: (reason: string) => void,
): Version | undefined => {
  try {
    return { version, trainedOn, onlyOrg, weights: requireShape(parseWeights(fromBase64(weights ?? ''))) }
  } catch (error) {
    onUnreadable(describeError(error))
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
