import type { ModelCard, PredictionAccuracy } from '../../api/answers.ts'
import { count, percent, seconds } from '../../ui/format.ts'
import { Stat, Stats } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { differenceOf, errorText, factorText } from './words.ts'

export const ModelNumbers = ({
  model,
  accuracy,
}: {
  model: ModelCard
  accuracy: PredictionAccuracy | undefined
}) => {
  const { smartqueue: shipped, series } = model.mixture.mean_abs_log_error
  const champion = model.versions.find(({ version }) => version === model.version)
  const faults = model.faults.reduce((sum, one) => sum + one.faults, 0)
  return (
    <Stats>
      <Stat
        label="Version in use"
        value={model.version ?? 'none'}
        note={
          champion ? (
            <>
              since <Time at={champion.decided_at ?? champion.created_at} />
            </>
          ) : (
            'the experts predict alone'
          )
        }
      />
      <Stat label="Trained on" value={count(model.trained_on)} unit="executions" note="the version in use" />
      <Stat
        label="Learned from"
        value={count(model.learned)}
        unit="executions"
        note={
          <>
            the last <Time at={model.updated_at} />
          </>
        }
      />
      <Stat
        label="Mean error"
        value={errorText(shipped)}
        note={
          shipped !== undefined &&
          (series === undefined
            ? `off by ${factorText(shipped)}`
            : `${differenceOf(shipped, series)} than the running mean`)
        }
      />
      <Stat
        label="Below their p90"
        value={percent(model.calibration.p90_coverage)}
        note={`90 % is right; of ${count(model.calibration.over)}`}
      />
      <Stat
        label="Off by, median"
        value={percent(accuracy?.overall.median_ape, 0)}
        note={accuracy ? `your ${count(accuracy.overall.jobs)} jobs of ${RANGE_WORDS[accuracy.range]}` : ''}
      />
      <Stat
        label="ETA off by, median"
        value={seconds(model.eta.median_abs_error_s)}
        note={`${percent(model.eta.within_p90, 0)} of your ${count(model.eta.jobs)} newest ended in time`}
      />
      <Stat
        label="Faults"
        value={count(faults)}
        note={faults === 0 ? 'every job had a prediction' : 'predicted without the network'}
      />
    </Stats>
  )
}

const RANGE_WORDS: Record<string, string> = { '24h': '24 h', '7d': '7 days', '30d': '30 days' }
