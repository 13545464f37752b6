import { Badge } from '../../ui/badges.tsx'
import { CopyButton } from '../../ui/code.tsx'

export const Enabled = ({ enabled }: { enabled: boolean }) => (
  <Badge tone={enabled ? 'green' : 'neutral'}>{enabled ? 'enabled' : 'disabled'}</Badge>
)

/** Where the sender is to send. */
export const Address = ({ url }: { url: string }) => (
  <span class="address">
    <code title={url}>{url}</code>
    <CopyButton text={url} label="Copy the address" />
  </span>
)
