import { render } from 'preact'
import { App } from './app.tsx'
import { keepLive } from './live/live.ts'
import { resume } from './session/session.ts'

const root = document.getElementById('app')
if (root) render(<App />, root)
keepLive()
void resume()
