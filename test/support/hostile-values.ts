import { JobError } from '../../worker-runtime/handler-api.ts'

const explode = (): never => {
  throw new Error('a trap')
}

const withGetters = <Target extends object>(target: Target, ...names: string[]): Target =>
  Object.defineProperties(target, Object.fromEntries(names.map((name) => [name, { get: explode }])))

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const trapped = (target: object): object =>
  new Proxy(target, { get: explode, has: explode, getPrototypeOf: explode, ownKeys: explode })

/** An `AggregateError` that contains itself. */
const cyclic = (): AggregateError => {
  const error = new AggregateError([])
  error.errors.push(error)
  return error
}

/** Factories for values that misbehave when read, with the error code of a job that throws one. */
export const HOSTILE: Record<string, { make: () => unknown; code: string }> = {
  'an error with a throwing message': {
    make: () => withGetters(new Error(), 'message'),
    code: 'handler_error',
  },
  'an error with unreadable fields': {
    make: () => withGetters(new Error(), 'message', 'name', 'stack', 'code', 'cause'),
    code: 'handler_error',
  },
  'an error whose message cannot be converted to a string': {
    make: () => Object.assign(new Error(), { message: Object.create(null) }),
    code: 'handler_error',
  },
  'an error that throws itself': {
    make: () => {
      const error = new Error()
      return Object.defineProperty(error, 'message', {
        get: () => {
          throw error
        },
      })
    },
    code: 'handler_error',
  },
  'a JobError with a throwing message': {
    make: () => withGetters(new JobError('own_code', ''), 'message'),
    code: 'own_code',
  },
  'a JobError with throwing fields': {
    make: () => withGetters(new JobError('', 'x'), 'code', 'permanent', 'retryAfterSeconds'),
    code: 'handler_error',
  },
  'a JobError with fields of wrong types': {
    make: () =>
      Object.assign(new JobError('', 'x'), { code: Symbol('s'), permanent: () => 1, retryAfterSeconds: 1n }),
    code: 'Symbol(s)',
  },
  'a revoked proxy': { make: revoked, code: 'handler_error' },
  'a proxy full of traps': { make: () => trapped({}), code: 'handler_error' },
  'a proxy of an error': { make: () => trapped(new Error('x')), code: 'handler_error' },
  'an object without a prototype': { make: () => Object.create(null), code: 'handler_error' },
  'an object with a throwing toString': { make: () => ({ toString: explode }), code: 'handler_error' },
  'an object with a throwing Symbol.toPrimitive': {
    make: () => ({ [Symbol.toPrimitive]: explode }),
    code: 'handler_error',
  },
  'an error that contains itself': { make: cyclic, code: 'handler_error' },
  'a message of 50 MB': { make: () => new Error('x'.repeat(50_000_000)), code: 'handler_error' },
  null: { make: () => null, code: 'handler_error' },
  'a symbol': { make: () => Symbol('s'), code: 'handler_error' },
}
