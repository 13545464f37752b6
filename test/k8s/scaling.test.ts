import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SCALING_BEHAVIOUR } from '../../worker-runtime/autoscale/replicas.ts'
import { parseConfig } from '../../worker-runtime/config.ts'
import { MAX_HEAP_MB } from '../../worker-runtime/learning/duty.ts'
import { FRUGAL_MALLOC, YOUNG_GENERATION } from '../../worker-runtime/local/worker-process.ts'
import { THREAD_LIMITS } from '../../worker-runtime/threads/limits.ts'
import { buildFolder, type Manifest } from '../support/kustomize.ts'
import {
  builds,
  containersOf,
  environmentOf,
  K8S,
  mebibytes,
  workloadOf,
  workloads,
} from '../support/manifests.ts'

const policy = ({
  stabilizationWindowSeconds,
  pods,
  periodSeconds,
}: typeof SCALING_BEHAVIOUR.up | typeof SCALING_BEHAVIOUR.down) => ({
  stabilizationWindowSeconds,
  selectPolicy: 'Max',
  policies: [{ type: 'Pods', value: pods, periodSeconds }],
})
const BEHAVIOR = { scaleUp: policy(SCALING_BEHAVIOUR.up), scaleDown: policy(SCALING_BEHAVIOUR.down) }

/** What a process takes beside its heaps: code, buffers, stacks. Measured: 140 MB in all when idle. */
const BESIDE_HEAPS_MB = 200
/** V8's young generation is three semi-spaces; of a thread that is told nothing else, of 16 MiB each. */
const SEMI_SPACES = 3
const DEFAULT_SEMI_SPACE_MB = 16
const { maxOldGenerationSizeMb = 0, maxYoungGenerationSizeMb = 0 } = THREAD_LIMITS
const THREAD_MB = maxOldGenerationSizeMb + SEMI_SPACES * maxYoungGenerationSizeMb
const LEARNING_MB = MAX_HEAP_MB + SEMI_SPACES * DEFAULT_SEMI_SPACE_MB

for (const [name, manifests] of builds()) {
  const worker = workloadOf(manifests, 'smartqueue-worker')
  const [container] = containersOf(worker)
  assert.ok(container)
  const config = parseConfig({
    ...Object.fromEntries(environmentOf(manifests, container)),
    DATABASE_URL: undefined,
    SMARTQUEUE_CONNECTIONS: undefined,
    OTEL_EXPORTER_OTLP_HEADERS: undefined,
  })

  test(`${name}: one autoscaler, by the rules and between the bounds that SmartQueue knows`, () => {
    const scalers = manifests.filter(({ kind }) => ['ScaledObject', 'HorizontalPodAutoscaler'].includes(kind))
    assert.equal(scalers.length, 1)
    const { min, max, behavior, asked } = readScaler(scalers[0] as Manifest)
    assert.ok(min >= 1 && min <= max)
    assert.deepEqual([min, max], [config.SMARTQUEUE_MIN_WORKERS, config.SMARTQUEUE_MAX_WORKERS])
    assert.deepEqual(behavior, BEHAVIOR)
    assert.equal(asked.length, 3)
    for (const { target } of asked) assert.equal(target, 'AverageValue 1')
    const { replicas, ...spec } = worker.owner.spec as { replicas?: number; strategy?: object }
    assert.equal(replicas, undefined, 'an apply would set back what the autoscaler has decided')
    assert.deepEqual(spec.strategy, {
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
    })
  })

  test(`${name}: a worker has time to drain before it is killed`, () => {
    const preStop = container.lifecycle?.preStop?.sleep?.seconds ?? 0
    const grace = worker.pod.terminationGracePeriodSeconds ?? 30
    assert.equal(grace, 300)
    // Ten seconds to give back what did not finish.
    assert.ok(config.SMARTQUEUE_DRAIN_SECONDS + preStop + 10 <= grace)
  })

  test(`${name}: all heaps at their limits fit into the memory of the container`, () => {
    const { requests, limits } = container.resources ?? {}
    assert.equal(limits?.cpu, undefined)
    assert.ok(requests?.cpu)
    const flags = container.args ?? []
    assert.ok(flags.includes(YOUNG_GENERATION))
    const slots = config.SMARTQUEUE_WORKER_SLOTS
    const most =
      flagOf(flags, 'max-old-space-size') +
      SEMI_SPACES * flagOf(flags, 'max-semi-space-size') +
      LEARNING_MB +
      slots * THREAD_MB +
      BESIDE_HEAPS_MB
    assert.ok(most <= mebibytes(limits?.memory), `${most} MiB of ${limits?.memory}`)
    assert.ok((config.SMARTQUEUE_WORKER_MEMORY_MB ?? Infinity) <= slots * THREAD_MB, 'what jobs may ask for')
    for (const [key, value] of Object.entries(FRUGAL_MALLOC))
      assert.equal(environmentOf(manifests, container).get(key), value)
  })

  test(`${name}: every container has its memory to itself, and a heap below it`, () => {
    for (const workload of workloads(manifests)) {
      for (const { args = [], resources, name: itsName } of containersOf(workload)) {
        const limit = mebibytes(resources?.limits?.memory)
        assert.ok(mebibytes(resources?.requests?.memory) <= limit)
        if (name !== 'local') assert.equal(resources?.requests?.memory, resources?.limits?.memory, itsName)
        if (itsName === 'postgres') continue
        const heap = flagOf(args, 'max-old-space-size') + SEMI_SPACES * DEFAULT_SEMI_SPACE_MB
        assert.ok(heap < limit, itsName)
      }
    }
  })
}

test('threads keep their own limits under the flags of the container', () => {
  const [container] = containersOf(
    workloadOf(buildFolder(join(K8S, 'overlays/production')), 'smartqueue-worker'),
  )
  const flags = (container?.args ?? []).filter((arg) => arg.startsWith('--'))
  const program = fileURLToPath(new URL('../support/heap-limits.ts', import.meta.url))
  const printed = execFileSync(process.execPath, [...flags, program], { encoding: 'utf8' })
  const { worker, job, learning } = JSON.parse(printed) as Record<string, number>
  const young = SEMI_SPACES * flagOf(flags, 'max-semi-space-size')
  assert.equal(worker, flagOf(flags, 'max-old-space-size') + young)
  assert.ok((job ?? Infinity) <= THREAD_MB, `${job} MiB`)
  assert.ok((learning ?? Infinity) <= LEARNING_MB, `${learning} MiB`)
})

const flagOf = (args: string[], flag: string): number => {
  const found = args.find((arg) => arg.startsWith(`--${flag}=`))
  assert.ok(found, `--${flag} is not set`)
  return Number(found.split('=')[1])
}

type Scaler = { min: number; max: number; behavior: unknown; asked: { of: string; target: string }[] }

const readScaler = (manifest: Manifest): Scaler =>
  manifest.kind === 'ScaledObject' ? readKeda(manifest) : readHpa(manifest)

const readKeda = ({ spec }: Manifest): Scaler => {
  const { minReplicaCount, maxReplicaCount, fallback, advanced, triggers } = spec as unknown as {
    minReplicaCount: number
    maxReplicaCount: number
    fallback: { replicas: number; behavior: string }
    advanced: { horizontalPodAutoscalerConfig: { behavior: unknown } }
    triggers: { type: string; metricType: string; metadata: Record<string, string> }[]
  }
  assert.ok(fallback.replicas >= minReplicaCount && fallback.replicas <= maxReplicaCount)
  assert.equal(fallback.behavior, 'currentReplicasIfHigher', 'blind, it takes nothing away')
  const asked = triggers.map(({ type, metricType, metadata }) => {
    assert.equal(type, 'metrics-api')
    assert.equal(metadata.url, 'http://smartqueue-controller.smartqueue.svc:9464/autoscale')
    return { of: metadata.valueLocation ?? '', target: `${metricType} ${metadata.targetValue}` }
  })
  assert.deepEqual(
    asked.map(({ of }) => of),
    ['needed.B', 'needed.R', 'needed.F'],
  )
  const { behavior } = advanced.horizontalPodAutoscalerConfig
  return { min: minReplicaCount, max: maxReplicaCount, behavior, asked }
}

const readHpa = ({ spec }: Manifest): Scaler => {
  const { minReplicas, maxReplicas, behavior, metrics } = spec as unknown as {
    minReplicas: number
    maxReplicas: number
    behavior: unknown
    metrics: { external: { metric: { name: string }; target: { type: string; averageValue: string } } }[]
  }
  const asked = metrics.map(({ external: { metric, target } }) => ({
    of: metric.name,
    target: `${target.type} ${target.averageValue}`,
  }))
  assert.deepEqual(
    asked.map(({ of }) => of),
    ['smartqueue_backlog_workers', 'smartqueue_arriving_workers', 'smartqueue_forecast_workers'],
  )
  return { min: minReplicas, max: maxReplicas, behavior, asked }
}
