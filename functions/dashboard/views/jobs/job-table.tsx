import { useComputed, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { JobSummary, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useLive } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { count, counted } from '../../ui/format.ts'
import { nextFrame } from '../../ui/next-frame.ts'
import { Empty, Failure, Skeleton } from '../../ui/notes.tsx'
import { isSet, type JobFilter } from './filter.ts'
import { createJobFeed, type JobFeed } from './job-feed.ts'
import { MAX_MISSING } from './job-list.ts'
import { JobRows } from './job-rows.tsx'
import { useHold } from './use-hold.ts'
import { useRowWindow } from './use-row-window.ts'

const PAGE_SIZE = 100

/** The list of one filter. Another filter is another list. */
export const JobTable = ({ filter }: { filter: JobFilter }) => {
  const feed = useJobFeed(filter)
  const frame = useRef<HTMLElement>(null)
  const { held, hold, release } = useHold()
  const total = useComputed(() => feed.list.value?.rows.length ?? 0)
  const { shown, atTop, rowHeight } = useRowWindow(frame, total)
  useSignalEffect(() => feed.look({ ...shown.value, atTop: atTop.value, held: held.value }))
  const list = feed.list.value
  const error = feed.error.value
  return (
    <section
      ref={frame}
      class="panel job-list"
      aria-label="Jobs"
      onPointerMove={({ pointerType }) => pointerType === 'mouse' && hold()}
    >
      {error && <Failure error={error} retry={feed.hurry} />}
      <NewJobs
        missing={held.value || !atTop.value ? (list?.missing.size ?? 0) : 0}
        onShow={() => {
          release()
          scrollTo({ top: 0 })
          feed.hurry()
        }}
      />
      {!list && !error && <Skeleton lines={12} />}
      {list?.rows.length === 0 && <NoJobs filter={filter} />}
      {list && list.rows.length > 0 && (
        <JobRows list={list} shown={shown.value} rowHeight={rowHeight.value} filter={filter} />
      )}
    </section>
  )
}

const useJobFeed = (filter: JobFilter): JobFeed => {
  const feed = useMemo(
    () =>
      createJobFeed({
        filter,
        load: (cursor, signal) =>
          get<Page<JobSummary>>('/jobs', { ...filter, limit: PAGE_SIZE, cursor }, signal),
        nextFrame,
      }),
    [],
  )
  useLive({ onEvents: feed.take, onResync: feed.resync })
  useEffect(() => {
    feed.start()
    return feed.stop
  }, [])
  return feed
}

/** New jobs stay out of the way of whoever reads further down. */
const NewJobs = ({ missing, onShow }: { missing: number; onShow: () => void }) => (
  <div class="new-jobs" role="status">
    {missing > 0 && (
      <Button kind="primary" small onClick={onShow}>
        {missing >= MAX_MISSING ? `${count(MAX_MISSING)} new jobs or more` : counted(missing, 'new job')}
      </Button>
    )}
  </div>
)

const NoJobs = ({ filter }: { filter: JobFilter }) =>
  isSet(filter) ? (
    <Empty title="No job matches">
      <p class="muted">
        Change a filter, or <a href={linkTo('/jobs')}>show all jobs</a>. Jobs that come to match appear here.
      </p>
    </Empty>
  ) : (
    <Empty title="No jobs yet">
      <p class="muted">
        {may('jobs:submit') ? (
          <a href={linkTo('/jobs', { submit: 'new' })}>Submit the first one</a>
        ) : (
          'Submit one'
        )}
        , or run <code>npm run demo</code> to see the queue at work.
      </p>
    </Empty>
  )
