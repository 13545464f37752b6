/**
 * Imports one of the peers. It is here because a package is looked up from the file that imports it, and the
 * peers are installed beside this one only. Callers name the little of its API that they use: the types of the
 * packages are missing wherever the peers are not installed.
 */
export const loadPeer = async <Api>(name: string): Promise<Api> => (await import(name)) as Api

const MISSING = new Set(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'])

export const isInstalled = async (name: string): Promise<boolean> => {
  try {
    await loadPeer(name)
    return true
  } catch (error) {
    if (MISSING.has((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}
