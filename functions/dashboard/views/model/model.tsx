import type { ModelCard } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { Empty, Loaded, Skeleton } from '../../ui/notes.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { usePredictionAccuracy } from './accuracy.ts'
import { Experts } from './experts.tsx'
import { LearningCurve } from './learning-curve.tsx'
import { Limits } from './limits.tsx'
import { Mixture } from './mixture.tsx'
import { ModelNumbers } from './numbers.tsx'
import { OwnJobs } from './own-jobs.tsx'
import { Versions } from './versions.tsx'

/** How long jobs will take: what predicts it, from what, and how well. */
export const View = () => {
  const card = useResource((signal) => get<ModelCard>('/model', {}, signal))
  const accuracy = usePredictionAccuracy()
  useReloadOnEvents(card.reload, ({ type }) => type === 'job.completed', 10_000)
  return (
    <>
      <PageHead title="Model" about="How long jobs will take, and how well that is known." />
      <Loaded resource={card} bones={<Skeleton height="60vh" />}>
        {(model) =>
          model.learned === 0 ? (
            <NothingYet />
          ) : (
            <>
              <ModelNumbers model={model} accuracy={accuracy.answer.data.value} />
              <OwnJobs accuracy={accuracy} model={model} />
              <h2 class="part">All organisations</h2>
              <div class="grid">
                <Experts model={model} />
                <Mixture model={model} />
                <LearningCurve model={model} />
                <Limits model={model} />
                <Versions model={model} />
              </div>
            </>
          )
        }
      </Loaded>
    </>
  )
}

const NothingYet = () => (
  <Empty title="Nothing has been learned yet">
    <p class="muted">
      Every job that completes teaches how long its like will take, and after a hundred the network is trained
      for the first time. Until then predictions are guesses by type.{' '}
      <a href={linkTo('/jobs')}>Submit jobs</a> to begin.
    </p>
  </Empty>
)
