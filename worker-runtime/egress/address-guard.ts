import { BlockList, isIP } from 'node:net'
import { domainToASCII } from 'node:url'

/**
 * Which addresses a job may reach. The rule: an address passes if the IANA registries call it globally
 * reachable, or if the operator allows it by name, by address or by subnet. Everything else is refused,
 * what cannot be read as an address included.
 */

export const ALLOW_SETTING = 'SMARTQUEUE_HTTP_ALLOW'

export type AllowList = readonly AllowEntry[]

/** No `port` means every port. */
type AllowEntry =
  | { readonly kind: 'name'; readonly hostname: string; readonly port?: number }
  | { readonly kind: 'subnet'; readonly subnet: BlockList; readonly family: Family; readonly port?: number }

type Family = 'ipv4' | 'ipv6'

/** A connection about to be made: `address` is what `hostname` stands for, by DNS or literally. */
export type Target = { readonly hostname: string; readonly port: number; readonly address: string }

export function isAllowed({ allow, ...target }: Target & { readonly allow: AllowList }): boolean {
  return isPublicAddress(target.address) || allow.some((entry) => admits(entry, target))
}

export function isPublicAddress(ip: string): boolean {
  const address = unmapped(ip)
  const family = familyOf(address)
  return (
    family !== undefined && OPEN[family].check(address, family) && !RESERVED[family].check(address, family)
  )
}

/**
 * The NetworkPolicies `jobs` and `database` in k8s/base/network-policies.yaml use the same ranges; a test
 * compares them.
 *
 * IANA assigns global unicast addresses only from 2000::/3, so the rest of IPv6 is blocked by default. That
 * covers :: and ::1, IPv4-compatible ::/96, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48: the translator may reach
 * internal IPv4), discard 100::/64, segment routing 5f00::/16, unique local fc00::/7, link-local fe80::/10,
 * site-local fec0::/10, multicast ff00::/8, and unassigned ranges.
 */
export const PUBLIC_RANGES = [
  {
    cidr: '0.0.0.0/0',
    except: [
      '0.0.0.0/8', // this host: Linux connects 0.0.0.0 to loopback
      '10.0.0.0/8', // private
      '100.64.0.0/10', // carrier-grade NAT; cloud metadata at 100.100.100.200
      '127.0.0.0/8', // loopback
      '168.63.129.16/32', // Azure's host agent: a public address that reaches only a virtual machine's own host
      '169.254.0.0/16', // link-local; cloud metadata at 169.254.169.254
      '172.16.0.0/12', // private
      '192.0.0.0/24', // IETF protocol assignments; cloud metadata at 192.0.0.192
      '192.0.2.0/24', // documentation
      '192.88.99.0/24', // 6to4 relays, deprecated: they lead into a tunnel
      '192.168.0.0/16', // private
      '198.18.0.0/15', // benchmarking of internal networks
      '198.51.100.0/24', // documentation
      '203.0.113.0/24', // documentation
      '224.0.0.0/4', // multicast
      '240.0.0.0/4', // reserved, including the broadcast address
    ],
  },
  {
    cidr: '2000::/3',
    except: [
      '2001::/23', // IETF protocol assignments: Teredo tunnels to any IPv4, ORCHID, benchmarking
      '2001:db8::/32', // documentation
      '2002::/16', // 6to4: embeds an IPv4 address that a relay would reach
      '3fff::/20', // documentation
    ],
  },
] as const

const [IPV4, IPV6] = PUBLIC_RANGES
const OPEN = { ipv4: blockList('ipv4', [IPV4.cidr]), ipv6: blockList('ipv6', [IPV6.cidr]) }
const RESERVED = { ipv4: blockList('ipv4', IPV4.except), ipv6: blockList('ipv6', IPV6.except) }

function blockList(family: Family, subnets: readonly string[]): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network = '', prefix] = subnet.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

function admits(entry: AllowEntry, target: Target): boolean {
  if (entry.port !== undefined && entry.port !== target.port) return false
  if (entry.kind === 'name') return entry.hostname === withoutRootDot(target.hostname.toLowerCase())
  const address = unmapped(target.address)
  return familyOf(address) === entry.family && entry.subnet.check(address, entry.family)
}

/** The IPv4 inside an IPv4-mapped IPv6 address, which a dual-stack socket connects to; else `ip` itself. */
function unmapped(ip: string): string {
  if (familyOf(ip) !== 'ipv6') return ip
  // The URL parser writes IPv6 in one canonical form: `::ffff:127.0.0.1` becomes `[::ffff:7f00:1]`.
  const groups = /^\[::ffff:([\da-f]+):([\da-f]+)\]$/.exec(new URL(`http://[${ip}]`).hostname)
  if (groups === null) return ip
  const [high, low] = groups.slice(1).map((group) => Number.parseInt(group, 16)) as [number, number]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** An address with a zone (`fe80::1%eth0`) has no family here: it names an interface, never the internet. */
function familyOf(ip: string): Family | undefined {
  if (ip.includes('%')) return undefined
  const version = isIP(ip)
  return version === 0 ? undefined : `ipv${version as 4 | 6}`
}

/** Reads `internal.example, localhost:9000, [::1]:80, 10.0.0.0/8`. Throws naming the entry it cannot read. */
export function parseAllowList(text: string): AllowList {
  if (text.trim() === '') return []
  return text.split(',').map((entry) => parseEntry(entry.trim()))
}

function parseEntry(entry: string): AllowEntry {
  if (entry === '') throw badEntry(entry, 'an entry between commas is empty')
  if (entry.includes('/')) return parseSubnet(entry)
  const { host, port } = splitPort(entry)
  const address = unmapped(host)
  const family = familyOf(address)
  if (family === undefined) return { kind: 'name', hostname: parseName(entry, host), ...port }
  const subnet = new BlockList()
  subnet.addAddress(address, family)
  return { kind: 'subnet', subnet, family, ...port }
}

function parseSubnet(entry: string): AllowEntry {
  const [, network = '', digits] = /^([^/]*)\/(\d{1,3})$/.exec(entry) ?? []
  const family = familyOf(network)
  if (family === undefined) throw badEntry(entry, 'a subnet is an IP address, "/" and a prefix length')
  // Addresses are compared unmapped, so a mapped subnet would sit in the list and never match.
  if (unmapped(network) !== network) throw badEntry(entry, 'write an IPv4-mapped subnet as IPv4')
  const longest = family === 'ipv4' ? 32 : 128
  if (Number(digits) > longest) throw badEntry(entry, `the prefix length is at most ${longest}`)
  return { kind: 'subnet', subnet: blockList(family, [entry]), family }
}

function splitPort(entry: string): { host: string; port: { port?: number } } {
  if (familyOf(entry) === 'ipv6') return { host: entry, port: {} }
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(.*))?$/.exec(entry) ?? []
  const host = bracketed ?? plain
  if (host === undefined) throw badEntry(entry, 'it is no host, host:port or subnet')
  if (bracketed !== undefined && familyOf(bracketed) !== 'ipv6') {
    throw badEntry(entry, 'only an IPv6 address stands in brackets')
  }
  if (digits === undefined) return { host, port: {} }
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0
  if (port < 1 || port > 65_535) throw badEntry(entry, 'a port is a number from 1 to 65535')
  return { host, port: { port } }
}

/** The name as the URL parser writes it: lower case, punycode. */
function parseName(entry: string, host: string): string {
  const name = withoutRootDot(domainToASCII(host))
  // A wildcard would only ever match itself, and 0x7f.1 is an address in disguise.
  if (!/^[a-z\d_-]+(\.[a-z\d_-]+)*$/.test(name) || isIP(name) !== 0) {
    throw badEntry(entry, 'it is no host name or IP address')
  }
  return name
}

const withoutRootDot = (hostname: string): string => hostname.replace(/\.$/, '')

const badEntry = (entry: string, why: string): Error => new Error(`"${entry}": ${why}`)
