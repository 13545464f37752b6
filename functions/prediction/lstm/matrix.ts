import {
  Add,
  BatchMatMul,
  Concat,
  engine,
  Multiply,
  Sigmoid,
  Slice,
  Sub,
  type Tensor2D,
  Transpose,
} from '@tensorflow/tfjs-core'

/**
 * The arithmetic on matrices that the network is written in: tfjs's kernels, called directly. Its public functions check
 * and convert their arguments first, which at this size costs as much as the arithmetic (a concat of four 64 × 32: 24 µs
 * instead of 12), and a training step is a thousand calls.
 */
export const matrix = (values: Float32Array, rows: number, columns: number): Tensor2D =>
  engine().makeTensor(values, [rows, columns], 'float32') as Tensor2D

export const matMul = (a: Tensor2D, b: Tensor2D): Tensor2D =>
  // Not the kernel's own transposition: on WASM that is ten times slower than an explicit one.
  run(BatchMatMul, { a, b }, { transposeA: false, transposeB: false })

/** Element by element; a matrix of one row or column is repeated to fit. */
export const add = (a: Tensor2D, b: Tensor2D): Tensor2D => run(Add, { a, b })
export const sub = (a: Tensor2D, b: Tensor2D): Tensor2D => run(Sub, { a, b })
export const mul = (a: Tensor2D, b: Tensor2D): Tensor2D => run(Multiply, { a, b })

export const sigmoid = (x: Tensor2D): Tensor2D => run(Sigmoid, { x })

/** 2σ(2x) − 1: tfjs's tanh on WASM goes number by number and takes twice as long (64 × 32: 36 µs instead of 15). */
export const tanh = (x: Tensor2D): Tensor2D => {
  const s = sigmoid(add(x, x))
  return sub(add(s, s), one())
}

/** The number 1, to be repeated over another matrix. */
export const one = (): Tensor2D => matrix(ONE, 1, 1)
const ONE = Float32Array.of(1)

export const transpose = (x: Tensor2D): Tensor2D => run(Transpose, { x }, { perm: [1, 0] })

/** n columns of x, from `first` on. */
export const columns = (x: Tensor2D, first: number, n: number): Tensor2D =>
  run(Slice, { x }, { begin: [0, first], size: [x.shape[0], n] })

export const sideBySide = (matrices: readonly Tensor2D[]): Tensor2D => run(Concat, matrices, { axis: 1 })
export const oneBelowAnother = (matrices: readonly Tensor2D[]): Tensor2D => run(Concat, matrices, { axis: 0 })

const run = (kernel: string, inputs: object, attributes?: object): Tensor2D =>
  engine().runKernel(kernel, inputs as never, attributes as never)
