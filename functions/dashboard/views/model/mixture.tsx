import type { ModelCard } from '../../api/answers.ts'
import { Bars } from '../../charts/bars.tsx'
import { ChartFrame } from '../../charts/chart-frame.tsx'
import { counted, percent } from '../../ui/format.ts'
import { EXPERT_NAMES, errorText, factorText, numberAt, SOURCE_NAMES } from './words.ts'

/** What each expert alone would have been worth, and whose word weighed most. */
export const Mixture = ({ model }: { model: ModelCard }) => {
  const experts = Object.entries(model.mixture.mean_abs_log_error)
    .map(([name, error]) => ({ name, label: EXPERT_NAMES[name] ?? name, error }))
    .sort((a, b) => a.error - b.error)
  const sources = Object.keys(model.sources)
    .map((name) => ({ label: SOURCE_NAMES[name] ?? name, jobs: numberAt(model.sources, name) ?? 0 }))
    .sort((a, b) => b.jobs - a.jobs)
  const all = sources.reduce((sum, { jobs }) => sum + jobs, 0)
  return (
    <ChartFrame
      title="The mixture and its experts"
      about="Mean error of each over the recent executions, best first. The mixture weighs them for each series."
      columns={[
        { title: 'Expert', cell: ({ label }) => label },
        { title: 'Mean error', numeric: true, cell: ({ error }) => errorText(error) },
        { title: 'Off by', numeric: true, cell: ({ error }) => factorText(error) },
      ]}
      rows={experts}
      keyOf={({ name }) => name}
    >
      <Bars
        bars={experts.map(({ name, label, error }) => ({
          ...{ label, value: error, text: errorText(error) },
          strong: name === 'smartqueue',
        }))}
      />
      {all > 0 && (
        <>
          <h3 class="apart">Whose word weighed most</h3>
          <Bars
            max={all}
            bars={sources.map(({ label, jobs }) => ({
              ...{
                label,
                value: jobs,
                text: `${counted(jobs, 'job')}, ${percent(jobs / all, 0)}`,
              },
            }))}
          />
        </>
      )}
    </ChartFrame>
  )
}
