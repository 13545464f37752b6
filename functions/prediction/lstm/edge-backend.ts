import { MathBackendCPU } from '@tensorflow/tfjs-backend-cpu/dist/backend_cpu.js'
import { addConfig } from '@tensorflow/tfjs-backend-cpu/dist/kernels/Add.js'
import { batchMatMulConfig } from '@tensorflow/tfjs-backend-cpu/dist/kernels/BatchMatMul.js'
import { sigmoidConfig } from '@tensorflow/tfjs-backend-cpu/dist/kernels/Sigmoid.js'
import { enableProdMode, env, registerBackend, registerKernel, setBackend } from '@tensorflow/tfjs-core'

/** What predicting uses (matrix.ts). The package's index would bring all kernels. */
const KERNELS = [addConfig, batchMatMulConfig, sigmoidConfig]

/**
 * Makes tfjs compute on a Cloudflare Worker: in JavaScript, because one row is too small for WebAssembly to pay off.
 * Only for bundles: the files of single kernels import each other in a way that Node does not resolve.
 */
export const useEdgeBackend = (): void => {
  enableProdMode() // or it greets, in the log, whoever computes without a native library
  env().setPlatform('edge', PLATFORM)
  registerBackend('cpu', () => new MathBackendCPU())
  for (const kernel of KERNELS) registerKernel(kernel)
  setBackend('cpu')
}

/** What tfjs asks of where it runs. */
const PLATFORM: Parameters<ReturnType<typeof env>['setPlatform']>[1] = {
  fetch: (path, init) => fetch(path, init),
  now: () => performance.now(),
  encode: (text) => new TextEncoder().encode(text),
  decode: (bytes) => new TextDecoder().decode(bytes),
  isTypedArray: (value): value is Float32Array => ArrayBuffer.isView(value),
}
