/**
 * The controller of a cluster: one replica is enough, because what it keeps stays when it is away.
 *
 * DATABASE_URL is a login of the functions (CONTROLLER_DATABASE_URL of the Secret smartqueue-database).
 * Its ServiceAccount needs a Role in its own namespace, and the token mounted:
 *   - apiGroups: [""], resources: [pods], verbs: [list, patch]
 * Its pod needs `enableServiceLinks: false`: for the Service smartqueue-controller Kubernetes would set
 * SMARTQUEUE_CONTROLLER_PORT and others, which are no settings.
 */
import { runClusterCommand } from '../cluster/command.ts'
import { createController } from './controller.ts'

const HELP = `Usage: npm run controller [-- --service-account FOLDER]

Runs in a pod of the workers' namespace until it gets SIGTERM. Serves /autoscale, and keeps the deletion costs of the workers'
pods, so that idle ones go first. The settings are in README.md.

  --service-account FOLDER   where token, ca.crt and namespace are, if not where Kubernetes mounts them`

runClusterCommand({ name: 'controller', help: HELP, create: createController })
