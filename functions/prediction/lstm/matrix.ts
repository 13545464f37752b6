import { Add, BatchMatMul, engine, Sigmoid, type Tensor2D, Transpose } from '@tensorflow/tfjs-core'

/**
 * The arithmetic on matrices that the network is written in: tfjs's kernels, called directly. Its public functions check
 * and convert their arguments first, which at this size costs as much as the arithmetic.
 *
 * Make new matrices for new values: the WASM backend keeps a packed copy of one that it has multiplied by, and would not
 * notice an edit.
 */
export const matrix = (values: Float32Array, rows: number, columns: number): Tensor2D => {
  // tfjs does not look, and WASM would go on reading behind the array's end.
  if (values.length !== rows * columns) {
    throw new Error(`${values.length} values are no matrix of ${rows} × ${columns}`)
  }
  return engine().makeTensor(values, [rows, columns], 'float32') as Tensor2D
}

/** Its values, row by row. On the CPU backend they are the matrix's own memory: change them only if nobody reads it. */
export const readMatrix = (x: Tensor2D): Float32Array<ArrayBuffer> =>
  x.dataSync() as Float32Array<ArrayBuffer>

export const matMul = (a: Tensor2D, b: Tensor2D): Tensor2D =>
  // Not the kernel's own transposition: on WASM that is ten times slower than an explicit one.
  run(BatchMatMul, { a, b }, { transposeA: false, transposeB: false })

/** Element by element; a matrix of one row is repeated to fit. */
export const add = (a: Tensor2D, b: Tensor2D): Tensor2D => run(Add, { a, b })

export const sigmoid = (x: Tensor2D): Tensor2D => run(Sigmoid, { x })

export const transpose = (x: Tensor2D): Tensor2D => run(Transpose, { x }, { perm: [1, 0] })

/** The sum of all rows, as one row. A product with ones: fifty times faster on WASM than tfjs's sum. */
export const sumRows = (x: Tensor2D): Tensor2D =>
  matMul(matrix(new Float32Array(x.shape[0]).fill(1), 1, x.shape[0]), x)

/** Runs `work` and frees every matrix that it made; it returns plain data. */
export const withMatrices = <Data>(work: () => Data): Data => {
  let data: Data | undefined
  engine().tidy(() => {
    data = work()
  })
  return data as Data
}

const run = (kernel: string, inputs: Record<string, Tensor2D>, attributes?: object): Tensor2D =>
  engine().runKernel(kernel, inputs, attributes as never)
