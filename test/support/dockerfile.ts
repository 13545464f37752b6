import { dirname } from 'node:path'

export type Instruction = { name: string; text: string }
export type Stage = { name: string; from: string; instructions: Instruction[] }

/** The stages of a Dockerfile, in order. Refuses what would run a shell where a list of arguments is meant. */
export const parseDockerfile = (source: string): Stage[] => {
  const stages: Stage[] = []
  const lines = source
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  for (const line of lines) {
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (!name) throw new Error(`No instruction: ${line}`)
    if (name === 'FROM') {
      const [, from = '', as = ''] = /^(\S+) AS (\S+)$/.exec(text) ?? []
      stages.push({ name: as, from, instructions: [] })
    } else if (stages.length === 0) throw new Error(`${name} comes before FROM`)
    else stages.at(-1)?.instructions.push({ name, text })
  }
  return stages
}

/** What a stage copies out of the build context. */
export const copiesOf = ({ instructions }: Stage): { sources: string[]; target: string; from?: string }[] =>
  instructions
    .filter(({ name }) => name === 'COPY')
    .map(({ text }) => {
      const words = text.split(/\s+/)
      const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
      const paths = words.filter((word) => !word.startsWith('--'))
      return { sources: paths.slice(0, -1), target: paths.at(-1) ?? '', ...(from && { from }) }
    })

/** Whether a file ends up in its own place in the image: with the folder that it is in, or by name. */
export const isCopied = (stage: Stage, file: string): boolean =>
  copiesOf(stage).some(
    ({ sources, target, from }) =>
      !from &&
      sources.some((source) =>
        source.endsWith('/')
          ? target === source && file.startsWith(source)
          : source === file && target === `${dirname(file)}/`,
      ),
  )

/** Whether .dockerignore keeps a file out: the last line that matches it, or a folder that it is in, decides. */
export const isIgnored = (ignore: string, file: string): boolean => {
  const folders = file.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'))
  let ignored = false
  for (const line of ignore.split('\n').map((text) => text.trim())) {
    if (line === '' || line.startsWith('#')) continue
    const pattern = line.replace(/^!/, '')
    if (folders.some((path) => toRegExp(pattern).test(path))) ignored = !line.startsWith('!')
  }
  return ignored
}

/** `*` is anything but a slash, also what starts with a dot; `**` any number of folders. */
const toRegExp = (pattern: string): RegExp => {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\?]/g, '\\$&')
    .replaceAll('**/', '<folders>')
    .replaceAll('*', '[^/]*')
    .replaceAll('<folders>', '(.*/)?')
  return new RegExp(`^${source}$`)
}
