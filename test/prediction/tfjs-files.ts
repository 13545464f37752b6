import { registerHooks } from 'node:module'

/**
 * Lets Node import single files of tfjs, which name each other without an extension, as only bundlers allow. They share
 * the engine and its registries with the package's index, which is another copy of the same code: both are global.
 */
registerHooks({
  resolve: (specifier, context, next) => {
    const ofTfjs = context.parentURL?.includes('/@tensorflow/')
    const bare = specifier.startsWith('.') && !specifier.endsWith('.js')
    return next(ofTfjs && bare ? `${specifier}.js` : specifier, context)
  },
})
