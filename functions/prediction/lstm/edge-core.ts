import '@tensorflow/tfjs-core/dist/flags.js'
import {
  fromUint8ToStringArray,
  mergeRealAndImagArrays,
  warn,
} from '@tensorflow/tfjs-core/dist/backends/backend_util.js'
import { whereImpl } from '@tensorflow/tfjs-core/dist/backends/where_impl.js'
import {
  assertAndGetBroadcastShape,
  getBroadcastDims,
} from '@tensorflow/tfjs-core/dist/ops/broadcast_util.js'
import {
  assert,
  computeStrides,
  convertBackendValuesAndArrayBuffer,
  decodeString,
  encodeString,
  getArrayFromDType,
  getTypedArrayFromDType,
  hasEncodingLoss,
  indexToLoc,
  inferFromImplicitShape,
  isString,
  locToIndex,
  makeZerosTypedArray,
  now,
  sizeFromShape,
  toTypedArray,
} from '@tensorflow/tfjs-core/dist/util.js'

/**
 * tfjs-core for the Worker: wrangler.toml puts this in the place of the package's index, for the CPU backend too. The
 * index brings model storage, optimisers and every helper of every kernel, and makes the compressed Worker 30 KiB larger;
 * this is what the network, the backend and the kernels of edge-backend.ts refer to. A kernel more may need a name more.
 */
export { DataStorage, KernelBackend } from '@tensorflow/tfjs-core/dist/backends/backend.js'
export { env } from '@tensorflow/tfjs-core/dist/environment.js'
export { enableProdMode, engine, registerBackend, setBackend } from '@tensorflow/tfjs-core/dist/globals.js'
export * from '@tensorflow/tfjs-core/dist/kernel_names.js'
export { registerKernel } from '@tensorflow/tfjs-core/dist/kernel_registry.js'
export { buffer } from '@tensorflow/tfjs-core/dist/ops/buffer.js'

export const backend_util = {
  assertAndGetBroadcastShape,
  fromUint8ToStringArray,
  getBroadcastDims,
  mergeRealAndImagArrays,
  warn,
}
export const broadcast_util = { assertAndGetBroadcastShape }
export const kernel_impls = { whereImpl }
export const util = {
  assert,
  computeStrides,
  convertBackendValuesAndArrayBuffer,
  decodeString,
  encodeString,
  getArrayFromDType,
  getTypedArrayFromDType,
  hasEncodingLoss,
  indexToLoc,
  inferFromImplicitShape,
  isString,
  locToIndex,
  makeZerosTypedArray,
  now,
  sizeFromShape,
  toTypedArray,
}
