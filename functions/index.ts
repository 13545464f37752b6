import { createApp } from './app.ts'
import { useEdgeBackend } from './prediction/lstm/edge-backend.ts'

export { JobStream } from './stream/job-stream.ts'

useEdgeBackend()

export default createApp()
