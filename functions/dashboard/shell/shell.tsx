import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { route } from '../router.ts'
import { Button } from '../ui/button.tsx'
import { Account } from './account.tsx'
import { Brand } from './brand.tsx'
import { CurrentView } from './current-view.tsx'
import { LinkState, LostBanner } from './link-state.tsx'
import { Navigation } from './navigation.tsx'

/** The frame around all views. On a narrow screen the menu opens over them. */
export const Shell = () => {
  const menuOpen = useSignal(false)
  const main = useRef<HTMLElement>(null)
  const path = route.value.path.join('/')
  const shown = useRef(path)
  useEffect(() => {
    // Whoever reads with the ears hears where they are now.
    if (shown.current !== path) {
      main.current?.focus()
      scrollTo(0, 0)
    }
    shown.current = path
  }, [path])
  return (
    <div class={`shell${menuOpen.value ? ' menu-open' : ''}`}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="side">
        <div class="side-head">
          <Brand />
          <span class="menu-button">
            <Button
              kind="quiet"
              icon={menuOpen.value ? 'close' : 'menu'}
              label={menuOpen.value ? 'Close menu' : 'Open menu'}
              onClick={() => {
                menuOpen.value = !menuOpen.value
              }}
            />
          </span>
        </div>
        <div class="side-body">
          <Navigation
            onChoose={() => {
              menuOpen.value = false
            }}
          />
          <LinkState />
          <Account />
        </div>
      </header>
      <main ref={main} tabIndex={-1} id="main">
        <LostBanner />
        <CurrentView />
      </main>
    </div>
  )
}
