import { useEffect } from 'preact/hooks'
import { summary } from '../live/live.ts'
import { route } from '../router.ts'
import { may } from '../session/session.ts'
import { shortCount } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { VIEWS, type View } from '../views/index.ts'

export const Navigation = ({ onChoose }: { onChoose: () => void }) => {
  const [current = ''] = route.value.path
  useEffect(onChoose, [route.value])
  return (
    <nav aria-label="Views">
      <ul>
        {VIEWS.filter(({ needs }) => may(needs)).map((view) => (
          <li key={view.path}>
            <a href={`#/${view.path}`} aria-current={view.path === current ? 'page' : undefined}>
              <Icon name={view.icon} />
              <span>{view.title}</span>
              <Count view={view} />
            </a>
          </li>
        ))}
        <li>
          <a href="/docs">
            <Icon name="docs" />
            <span>API reference</span>
          </a>
        </li>
      </ul>
    </nav>
  )
}

/** What is queued or runs, beside the jobs. */
const Count = ({ view }: { view: View }) => {
  const depth = summary.value?.depth
  if (view.path !== 'jobs' || !depth) return null
  const active = depth.ready + depth.running + depth.retrying + depth.pending + depth.blocked
  return active > 0 ? <span class="count">{shortCount(active)}</span> : null
}
