import assert from 'node:assert/strict'

/** Equal to within `tolerance`, absolutely for numbers below one and relatively above. */
export const assertNear = (
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  what = 'value',
): void => {
  assert.equal(actual.length, expected.length, `${what}: the count`)
  for (let n = 0; n < actual.length; n++) {
    const [a, e] = [actual[n] as number, expected[n] as number]
    const near = Math.abs(a - e) <= tolerance * Math.max(1, Math.abs(e))
    assert.ok(near, `${what} ${n}: ${a} instead of ${e}`)
  }
}
