/** Of what one attempt says. A longer message is cut, a longer log ends with a line that says so. */
export const MAX_MESSAGE_CHARACTERS = 8 * 1024
export const MAX_LINES_PER_ATTEMPT = 10_000
