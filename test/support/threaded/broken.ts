throw new Error('broken on purpose')

export const run = () => null
