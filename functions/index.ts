import { createApp } from './app.ts'
import { useEdgeBackend } from './prediction/lstm/edge-backend.ts'

useEdgeBackend()

export default createApp()
