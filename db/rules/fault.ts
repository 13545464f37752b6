/** What is wrong, and where in the value that was looked at: `['payload', 'url']`. */
export type Fault = { readonly path: readonly (string | number)[]; readonly message: string }
