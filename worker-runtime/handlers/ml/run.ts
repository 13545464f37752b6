import { setImmediate as turn } from 'node:timers/promises'
import type { JobContext } from '../../handler-api.ts'
import { useWasmBackend } from '../../learning/wasm-backend.ts'
import type { Pause } from './answers.ts'
import { createCheckpoints } from './checkpoints.ts'
import { type Evaluation, evaluate, evaluateNaive } from './evaluation.ts'
import { fillMissing } from './missing.ts'
import { type Plan, planForecast } from './plan.ts'
import {
  beatsNaive,
  describeError,
  describeTraining,
  forecastByNetwork,
  forecastNaively,
  improvementOf,
  type MlResult,
} from './result.ts'
import type { MlPayload } from './schema.ts'
import { readSeries } from './series.ts'
import {
  beginTraining,
  finish,
  finishingEpochs,
  fit,
  type TrainingOptions,
  type TrainingState,
} from './training.ts'
import { createValidation } from './validation.ts'

type Forecast = Pick<MlResult, 'source' | 'forecast'> & {
  evaluation: Evaluation
  training: TrainingState | undefined
}

/** Reads a series, trains the network on it, measures it on the held-out tail, and forecasts with what is better. */
export async function run(payload: MlPayload, ctx: JobContext): Promise<MlResult> {
  const startedAt = performance.now()
  const { values, interpolated } = fillMissing(await readSeries(payload.series, ctx), payload.missing)
  const plan = planForecast(values, payload)
  ctx.log.info(describePlan(plan))
  const { source, forecast, evaluation, training } = plan.isExact
    ? withoutTraining(plan)
    : await withTraining(plan, payload, ctx)
  const summary = describeEvaluation(evaluation)
  ctx.log.info(summary)
  ctx.progress(1, summary)
  return {
    source,
    beats_naive: source === 'lstm',
    forecast,
    horizon: payload.horizon,
    n: values.length,
    interpolated,
    season: plan.season > 1 ? plan.season : null,
    naive_kind: plan.naiveSeason > 1 ? 'seasonal' : 'last_value',
    error: describeError(plan, evaluation),
    ...describeTraining(training, payload.epochs),
    duration_ms: Math.round(performance.now() - startedAt),
  }
}

const withoutTraining = (plan: Plan): Forecast => ({
  source: 'naive',
  forecast: forecastNaively(plan),
  evaluation: evaluateNaive(plan),
  training: undefined,
})

async function withTraining(plan: Plan, payload: MlPayload, ctx: JobContext): Promise<Forecast> {
  await startBackend()
  const pause: Pause = async () => {
    // The word that the job is cancelled, and what it has to say, need a turn.
    await turn()
    ctx.signal.throwIfAborted()
  }
  const validation = createValidation(plan, pause)
  const checkpoints = createCheckpoints(ctx, payload, plan.values)
  const options: TrainingOptions = {
    epochs: payload.epochs,
    hidden: payload.hidden,
    seed: payload.seed,
    plan,
    validation,
    pause,
    onEpoch: async (state) => {
      ctx.progress(...describeProgress(state, payload.epochs))
      await checkpoints.keep(state)
    },
  }
  const training = await fit(options, checkpoints.last() ?? (await beginTraining(options)))
  const { weights } = training.best
  const calibration = await validation.calibrate(weights)
  const evaluation = await evaluate(plan, weights, calibration, pause)
  if (!beatsNaive(evaluation)) {
    return { source: 'naive', forecast: forecastNaively(plan), evaluation, training }
  }
  const finished = await finish(options, training)
  const forecast = await forecastByNetwork(plan, finished, calibration, pause)
  return { source: 'lstm', forecast, evaluation, training }
}

let backend: Promise<void> | undefined

/** Once in a thread, which serves one job after the other. */
const startBackend = (): Promise<void> => {
  backend ??= useWasmBackend()
  return backend
}

/** Fitting is nine tenths of the way; it may be over sooner. */
const FITTING_SHARE = 0.9

function describeProgress(state: TrainingState, epochs: number): [fraction: number, note: string] {
  if (state.stage === 'finish') {
    const total = finishingEpochs(state)
    const fraction = FITTING_SHARE + ((1 - FITTING_SHARE) * state.finished) / total
    return [fraction, `finishing epoch ${state.finished} of ${total}, over all values`]
  }
  const epoch = state.trainLosses.length
  const [naive, loss] = [state.validationLosses[0], state.validationLosses[epoch]] as [number, number]
  const note = `epoch ${epoch} of ${epochs}, loss ${loss.toPrecision(3)} (naive ${naive.toPrecision(3)})`
  return [(FITTING_SHARE * epoch) / epochs, note]
}

function describePlan({ values, trainEnd, season, naiveSeason }: Plan): string {
  const repeats = season > 1 ? `a season of ${season}` : 'no season'
  const naive = naiveSeason > 1 ? 'the value one season before' : 'the last value'
  return `${values.length} values, ${values.length - trainEnd} of them held out; ${repeats}; the naive forecast is ${naive}`
}

function describeEvaluation(evaluation: Evaluation): string {
  const { model, naive } = evaluation
  const improvement = improvementOf(evaluation)
  const percent = (100 * Math.abs(improvement ?? 0)).toFixed(1)
  const compared = improvement === null ? '' : ` (${percent} % ${improvement < 0 ? 'more' : 'less'})`
  const shipped = beatsNaive(evaluation) ? "the network's" : 'the naive one'
  const errors = `Mean absolute error ${model.mae.toPrecision(4)}, naive ${naive.mae.toPrecision(4)}${compared}`
  return `${errors}: the forecast is ${shipped}`
}
