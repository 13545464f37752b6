import { type Signal, useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { Refusal } from '../api/refusal.ts'
import { linkTo, route } from '../router.ts'
import { may } from '../session/session.ts'
import { Failure, Skeleton } from '../ui/notes.tsx'
import { PageHead } from '../ui/panel.tsx'
import { VIEWS, type View, type ViewProps } from '../views/index.ts'

type Loaded = { view: View; Component: ComponentType<ViewProps> }

export const CurrentView = () => {
  const [first = '', ...rest] = route.value.path
  const view = VIEWS.find(({ path, needs }) => path === first && may(needs))
  const loaded = useSignal<Loaded | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  useEffect(() => load(view, loaded, error), [view])
  if (!view) return <NoSuchView />
  if (error.value !== undefined) return <Failure error={error.value} retry={() => location.reload()} />
  if (loaded.value?.view !== view) return <Skeleton height="60vh" />
  const { Component } = loaded.value
  return <Component rest={rest} />
}

/** What an earlier version has loaded may be gone. */
const NOT_LOADED = new Refusal({
  title: 'The view was not loaded',
  detail: 'SmartQueue was perhaps updated since you opened the page. Try again to reload it.',
})

const load = (
  view: View | undefined,
  loaded: Signal<Loaded | undefined>,
  error: Signal<unknown>,
): (() => void) => {
  let current = true
  if (view) {
    error.value = undefined
    view.load().then(
      (Component) => {
        if (current) loaded.value = { view, Component }
      },
      (reason: unknown) => {
        console.error(reason)
        if (current) error.value = NOT_LOADED
      },
    )
  }
  return () => {
    current = false
  }
}

const NoSuchView = () => (
  <PageHead
    title="There is nothing here"
    about={
      <>
        The address is wrong, or your role does not let you see this.{' '}
        <a href={linkTo('/')}>Go to the overview</a>.
      </>
    }
  />
)
