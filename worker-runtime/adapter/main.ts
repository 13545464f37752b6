/**
 * The metrics adapter of a cluster: an aggregated API server for external.metrics.k8s.io/v1beta1. It keeps nothing; two replicas
 * let one be moved.
 *
 * DATABASE_URL is a login of the functions (CONTROLLER_DATABASE_URL of the Secret smartqueue-database).
 * Its ServiceAccount needs the token mounted, and one RoleBinding in kube-system, to read whose client certificates to trust:
 *   - roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
 * Not system:auth-delegator: it answers nobody but the cluster's API servers, and they ask RBAC before they pass a request on.
 * Its certificate is for smartqueue-metrics-adapter.<namespace>.svc, and the APIService has the CA of that as caBundle.
 * Its pod needs `enableServiceLinks: false`: for the Service smartqueue-metrics-adapter Kubernetes would set
 * SMARTQUEUE_METRICS_ADAPTER_PORT and others, which are no settings.
 */
import { runClusterCommand } from '../cluster/command.ts'
import { createAdapter } from './adapter.ts'

const HELP = `Usage: npm run adapter [-- --service-account FOLDER]

Runs in a pod of the workers' namespace until it gets SIGTERM. Serves what workers are scaled by as external metrics, to the API
servers of the cluster. The settings are in README.md.

  --service-account FOLDER   where token, ca.crt and namespace are, if not where Kubernetes mounts them`

runClusterCommand({ name: 'metrics adapter', help: HELP, create: createAdapter })
