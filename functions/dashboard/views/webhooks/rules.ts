import type { Source } from '../../api/answers.ts'
import { readJson, toJsonText } from '../../ui/json-text.ts'

/** Filter and template as people edit them. */
export type RuleTexts = { filter: string; template: string }

export const textsOf = ({ filter, template }: Pick<Source, 'filter' | 'template'>): RuleTexts => ({
  filter: filter === null ? '' : toJsonText(filter),
  template: toJsonText(template),
})

/** What is sent. An empty filter takes every event. */
export const rulesOf = ({ filter, template }: RuleTexts): { filter: unknown; template: unknown } => ({
  filter: filter.trim() === '' ? null : readJson(filter, '/filter'),
  template: readJson(template, '/template'),
})

export type Warning = { pointer: string; detail: string }
