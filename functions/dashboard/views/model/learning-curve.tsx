import type { ModelCard } from '../../api/answers.ts'
import { ChartFrame, Legend } from '../../charts/chart-frame.tsx'
import { linearScale } from '../../charts/scale.ts'
import { pathOf, XyPlot } from '../../charts/xy-plot.tsx'
import { count, shortCount } from '../../ui/format.ts'
import { Empty } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { errorText, firstJudgementOf } from './words.ts'

const TITLE = 'Learning curve'

/** What more executions were worth: each version on executions that it had not seen. */
export const LearningCurve = ({ model }: { model: ModelCard }) => {
  const judged = model.versions.toReversed().flatMap((version) => {
    const judgement = firstJudgementOf(version)
    return judgement ? [{ ...judgement, version: version.version, trainedOn: version.trained_on }] : []
  })
  if (judged.length === 0) {
    return (
      <Panel title={TITLE}>
        <Empty title="No version has been judged yet">
          <p class="muted">The first is trained on a hundred executions, and judged by the hundred after.</p>
        </Empty>
      </Panel>
    )
  }
  const x = linearScale(Math.max(...judged.map(({ trainedOn }) => trainedOn)), shortCount)
  const y = linearScale(Math.max(...judged.flatMap(({ own, rival }) => [own, rival])), errorText)
  const line = (pick: 'own' | 'rival') => judged.map((one) => ({ x: one.trainedOn, y: one[pick] }))
  return (
    <ChartFrame
      title={TITLE}
      about="Mean error of each version on executions that it had not seen. Filled: it was promoted."
      legend={
        <Legend
          entries={[
            { label: 'Challenger', color: 'accent' },
            { label: 'Champion of that time', color: 'muted', dashed: true },
          ]}
        />
      }
      columns={[
        { title: 'Version', numeric: true, cell: ({ version }) => version },
        { title: 'Trained on', numeric: true, cell: ({ trainedOn }) => count(trainedOn) },
        { title: 'Its error', numeric: true, cell: ({ own }) => errorText(own) },
        { title: "Champion's error", numeric: true, cell: ({ rival }) => errorText(rival) },
      ]}
      rows={judged.toReversed()}
      keyOf={({ version }) => String(version)}
    >
      <XyPlot
        label={`${TITLE}: mean errors of ${judged.length} versions, by the executions that they were trained on.`}
        x={{ ...x, title: 'executions trained on' }}
        y={{ ...y, title: 'mean error' }}
      >
        {(place) => (
          <>
            <polyline class="ideal" points={pathOf(line('rival'), place)} />
            <polyline class="curve accent" points={pathOf(line('own'), place)} />
            {judged.map(({ version, trainedOn, own, rival, kind }) => (
              <circle
                key={version}
                class={`dot accent${kind === 'promoted' ? '' : ' hollow'}`}
                r="4.5"
                cx={place.x(trainedOn)}
                cy={place.y(own)}
              >
                <title>
                  {`Version ${version}, ${kind}: ${errorText(own)}, the champion ${errorText(rival)}`}
                </title>
              </circle>
            ))}
          </>
        )}
      </XyPlot>
    </ChartFrame>
  )
}
