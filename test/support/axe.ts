import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const WCAG_22_AA = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

type Result = { violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }

/** What on the page breaks WCAG 2.2 AA, as far as a program can tell. */
export const findViolations = (page: Page): Promise<string[]> => run(page, WCAG_22_AA)

/** What of that another colour scheme may change. */
export const findLowContrast = (page: Page): Promise<string[]> => run(page, ['color-contrast'])

const run = async (page: Page, runOnly: string[]): Promise<string[]> => {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE)
  const { violations } = await page.evaluate<Result>(
    `axe.run(document, { runOnly: ${JSON.stringify(runOnly)}, resultTypes: ['violations'] })`,
  )
  return violations.map(({ id, nodes }) => {
    const [first] = nodes
    return `${id}: ${first?.html.slice(0, 160)} ${first?.failureSummary.replaceAll(/\s+/g, ' ')}`
  })
}
