/** In the Worker, `import { z } from 'zod'` is this: wrangler.toml says so. */
export * as z from './edge-zod-parts.ts'
