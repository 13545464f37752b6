/** What build.ts finds in wrangler.toml. */
export type BuiltFunctions = {
  compatibilityDate: string
  compatibilityFlags: string[]
  vars: Record<string, string>
  objects: { name: string; className: string }[]
  /** The folder of the assets. */
  assets: string
}

/**
 * The configuration of workerd, in its Cap'n Proto text. Bindings come from the environment: they hold secrets, and this is
 * written to a file.
 */
export const workerdConfig = (
  built: BuiltFunctions,
  options: { bindings: readonly string[]; listenOn: string; storage: string },
): string => `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "functions", worker = .functions),
    (name = "assets", worker = .assets),
    (name = "files", disk = (path = ${text(built.assets)})),
    (name = "storage", disk = (path = ${text(options.storage)}, writable = true)),
    # For the database and the trace collector.
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))
  ],
  sockets = [(name = "http", address = ${text(options.listenOn)}, http = (), service = "functions")]
);

const functions :Workerd.Worker = (
  modules = [
    (name = "entry-worker.js", esModule = embed "entry-worker.js"),
    (name = "index.js", esModule = embed "index.js"),
    (name = "assets.json", json = embed "assets.json")
  ],
  compatibilityDate = ${text(built.compatibilityDate)},
  compatibilityFlags = [${built.compatibilityFlags.map(text).join(', ')}],
  bindings = [
    ${[
      ...options.bindings.map((name) => `(name = ${text(name)}, fromEnvironment = ${text(name)})`),
      ...built.objects.map(
        ({ name, className }) => `(name = ${text(name)}, durableObjectNamespace = ${text(className)})`,
      ),
      '(name = "ASSETS", service = "assets")',
    ].join(',\n    ')}
  ],
  durableObjectNamespaces = [
    ${built.objects
      .map(
        ({ className }) =>
          `(className = ${text(className)}, uniqueKey = ${text(className)}, enableSql = true)`,
      )
      .join(',\n    ')}
  ],
  durableObjectStorage = (localDisk = "storage")
);

const assets :Workerd.Worker = (
  modules = [
    (name = "assets-worker.js", esModule = embed "assets-worker.js"),
    (name = "assets.json", json = embed "assets.json")
  ],
  compatibilityDate = ${text(built.compatibilityDate)},
  bindings = [(name = "FILES", service = "files")]
);
`

const text = (value: string): string => JSON.stringify(value)
