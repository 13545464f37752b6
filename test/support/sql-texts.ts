/**
 * Finds the SQL of the product in the syntax trees of its TypeScript files. Where SQL belongs, that is every `text` of a
 * query and every literal that is passed to `query()`; elsewhere, every literal that looks like a statement.
 */
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Expression, Node, SourceFile } from 'typescript/unstable/ast'
import {
  isCallExpression,
  isConditionalExpression,
  isIdentifier,
  isImportDeclaration,
  isNamedImports,
  isNoSubstitutionTemplateLiteral,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isShorthandPropertyAssignment,
  isStringLiteral,
  isTemplateExpression,
  isVariableDeclaration,
  isVariableStatement,
} from 'typescript/unstable/ast/is'
import { API } from 'typescript/unstable/sync'

export type SqlText = {
  /** `db/queries/leader.ts:12` */
  place: string
  file: string
  /** The name of the query, or of the constant that it stands in. */
  name: string
  /** Undefined if it is assembled at run time. */
  text: string | undefined
  /** Who sends it. */
  senders: Sender[]
}

export type Sender = 'functions' | 'workers' | 'owner'

/** Run by an operator or at start, with the login that owns the tables. */
const OWNERS_FILES = /^worker-runtime\/(admin|local)\/|^worker-runtime\/(database-login|migrate)\.ts$/

/** The database of SmartQueue is reached through db/; the others send statements to the databases of users. */
const SQL_FILES =
  /^db\/|^worker-runtime\/(connections\/end-on-server|handlers\/(etl\/load-statements|sources\/postgres-query))\.ts$/

const LOOKS_LIKE_SQL =
  /^\s*(with\s+\w+\s+as\s|select\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|(create|alter|drop)\s+(table|role|schema|function|database)\s|listen\s|notify\s)/

export const collectSqlTexts = (): { texts: SqlText[]; outside: string[] } => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const api = new API({ cwd: root })
  try {
    const [project] = api.updateSnapshot({ openProjects: ['tsconfig.json'] }).getProjects()
    const program = project?.program
    if (!program) throw new Error('tsconfig.json opens no project')
    const sources = program.getSourceFileNames().flatMap((path) => {
      const file = relative(root, path)
      const source =
        /^(db\/(?!rules\/)|functions\/|worker-runtime\/)/.test(file) && program.getSourceFile(path)
      return source ? [{ file, source }] : []
    })
    const senders = findSenders(sources)
    return {
      texts: sources.flatMap((one) => (SQL_FILES.test(one.file) ? textsOf(one, senders) : [])),
      outside: sources.flatMap((one) => (SQL_FILES.test(one.file) ? [] : statementsOf(one))),
    }
  } finally {
    api.close()
  }
}

type Source = { file: string; source: SourceFile }

/** By the name of a query builder, who imports it. */
const findSenders = (sources: Source[]): Map<string, Set<Sender>> => {
  const senders = new Map<string, Set<Sender>>()
  for (const { file, source } of sources) {
    if (file.startsWith('db/')) continue
    const sender = file.startsWith('functions/') ? 'functions' : OWNERS_FILES.test(file) ? 'owner' : 'workers'
    for (const statement of source.statements) {
      if (!isImportDeclaration(statement)) continue
      const bindings = statement.importClause?.namedBindings
      if (!bindings || !isNamedImports(bindings)) continue
      for (const { name, propertyName } of bindings.elements) {
        const imported = (propertyName ?? name).text
        senders.set(imported, (senders.get(imported) ?? new Set()).add(sender))
      }
    }
  }
  return senders
}

const textsOf = ({ file, source }: Source, senders: Map<string, Set<Sender>>): SqlText[] => {
  const texts: SqlText[] = []
  for (const statement of source.statements) {
    const builder = isVariableStatement(statement)
      ? nameOf(statement.declarationList.declarations[0]?.name)
      : ''
    visit(statement, (node) => {
      const value = sqlOf(node)
      if (!value) return
      for (const constant of constantsOf(value, source)) {
        texts.push({
          place: placeOf(file, source, value),
          file,
          name: queryName(node) ?? builder,
          text: constant,
          senders: [...(senders.get(builder) ?? [])],
        })
      }
    })
  }
  return texts
}

/** The value of a `text` property, or a literal that is passed to `query()`. */
const sqlOf = (node: Node): Expression | undefined => {
  if (isShorthandPropertyAssignment(node) && isIdentifier(node.name) && node.name.text === 'text')
    return node.name
  if (isPropertyAssignment(node) && nameOf(node.name) === 'text') return node.initializer
  if (!isCallExpression(node) || !isPropertyAccessExpression(node.expression)) return undefined
  const [first] = node.arguments
  return node.expression.name.text === 'query' && first && isLiteral(first) ? first : undefined
}

const isLiteral = (node: Node): boolean =>
  isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) || isTemplateExpression(node)

/** What it can be: undefined if it is neither a literal nor a constant of the same file that is one. */
const constantsOf = (value: Expression, source: SourceFile): (string | undefined)[] => {
  if (isStringLiteral(value) || isNoSubstitutionTemplateLiteral(value)) return [value.text]
  if (isConditionalExpression(value)) {
    return [...constantsOf(value.whenTrue, source), ...constantsOf(value.whenFalse, source)]
  }
  if (!isIdentifier(value)) return [undefined]
  let found: (string | undefined)[] = [undefined]
  visit(source, (node) => {
    if (!isVariableDeclaration(node) || nameOf(node.name) !== value.text || !node.initializer) return
    found = isIdentifier(node.initializer) ? [undefined] : constantsOf(node.initializer, source)
  })
  return found
}

const queryName = (node: Node): string | undefined => {
  let name: string | undefined
  node.parent?.forEachChild((sibling) => {
    if (
      isPropertyAssignment(sibling) &&
      nameOf(sibling.name) === 'name' &&
      isStringLiteral(sibling.initializer)
    ) {
      name = sibling.initializer.text
    }
  })
  return name
}

const statementsOf = ({ file, source }: Source): string[] => {
  const places: string[] = []
  visit(source, (node) => {
    const text = isTemplateExpression(node)
      ? node.head.text
      : isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node)
        ? node.text
        : ''
    if (LOOKS_LIKE_SQL.test(text)) places.push(placeOf(file, source, node))
  })
  return places
}

const nameOf = (name: Node | undefined): string => (name && isIdentifier(name) ? name.text : '')

const placeOf = (file: string, source: SourceFile, node: Node): string =>
  `${file}:${source.text.slice(0, node.getStart(source)).split('\n').length}`

const visit = (node: Node, look: (node: Node) => void): void => {
  look(node)
  node.forEachChild((child) => visit(child, look))
}
