import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isAllowed, isPublicAddress, parseAllowList } from '../../worker-runtime/egress/address-guard.ts'

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.17',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '::ffff:8.8.8.8',
  '::ffff:808:808',
  '2000::',
  '2001:200::1',
  '2001:4860:4860::8888',
  '2003::1',
  '2606:4700:4700::1111',
  '3fff:1000::',
]

const NOT_PUBLIC: Record<string, readonly string[]> = {
  'this host': ['0.0.0.0', '0.255.255.255', '::'],
  loopback: ['127.0.0.1', '127.255.255.255', '::1'],
  private: ['10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  'carrier-grade NAT': ['100.64.0.0', '100.100.100.200', '100.127.255.255'],
  'link-local': ['169.254.0.0', '169.254.255.255', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
  'cloud metadata': ['169.254.169.254', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254'],
  'protocol assignments': ['192.0.0.1', '192.88.99.1', '2001::1', '2001:20::1', '2001:1ff:ffff::'],
  benchmarking: ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1', '3fff:fff::'],
  'multicast, reserved, broadcast': [
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    'ff02::1',
  ],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:FFFF:7F00:0001', '::ffff:a9fe:a9fe'],
  'IPv4-compatible': ['::127.0.0.1', '::8.8.8.8', '::ffff:0:8.8.8.8'],
  'NAT64 and 6to4': [
    '64:ff9b::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2002:808:808::1',
  ],
  'unique local, site-local': ['fc00::1', 'fdff::1', 'fec0::1'],
  'discard, segment routing, unassigned': ['100::1', '5f00::1', '4000::', '1fff:ffff::'],
  'no address at all': [
    '',
    'localhost',
    '127.1',
    '0177.0.0.1',
    '0x7f.1',
    '2130706433',
    '[::1]',
    '8.8.8.8 ',
    '1.1.1.1%0',
  ],
}

describe('isPublicAddress', () => {
  for (const ip of PUBLIC) it(`passes ${ip}`, () => assert.equal(isPublicAddress(ip), true))
  for (const [group, addresses] of Object.entries(NOT_PUBLIC)) {
    for (const ip of addresses)
      it(`refuses ${group}: "${ip}"`, () => assert.equal(isPublicAddress(ip), false))
  }
  for (const notation of [
    '0177.0.0.1',
    '0x7f.1',
    '2130706433',
    '127.1',
    '127.0.0.1.',
    '１２７.0.0.1',
    '[::ffff:127.0.0.1]',
  ]) {
    it(`refuses the loopback literal ${notation} as the URL parser writes it`, () => {
      const hostname = new URL(`http://${notation}/`).hostname.replace(/^\[|\]$/g, '')
      assert.match(hostname, /^(127\.0\.0\.1|::ffff:7f00:1)$/)
      assert.equal(isPublicAddress(hostname), false)
    })
  }
})

describe('isAllowed', () => {
  const allowed = (setting: string, hostname: string, port: number, address: string) =>
    isAllowed({ hostname, port, address, allow: parseAllowList(setting) })

  it('passes a public address without any entry', () => {
    assert.equal(allowed('', 'example.com', 443, '1.1.1.1'), true)
    assert.equal(allowed('', 'example.com', 443, '10.0.0.1'), false)
  })

  it('takes a bare host for every port and host:port for that port only', () => {
    assert.equal(allowed('internal.example', 'internal.example', 8080, '10.0.0.1'), true)
    assert.equal(allowed('localhost:9000', 'localhost', 9000, '127.0.0.1'), true)
    assert.equal(allowed('localhost:9000', 'localhost', 9001, '127.0.0.1'), false)
  })

  it('compares names without regard to case, root dot and script', () => {
    assert.equal(allowed('Internal.Example.', 'internal.example', 80, '10.0.0.1'), true)
    assert.equal(allowed('internal.example', 'INTERNAL.example.', 80, '10.0.0.1'), true)
    assert.equal(allowed('bücher.example', 'xn--bcher-kva.example', 80, '10.0.0.1'), true)
  })

  it('does not take a name for its subdomains, its suffix or another name', () => {
    for (const hostname of [
      'a.internal.example',
      'notinternal.example',
      'internal.example.evil',
      'example',
    ]) {
      assert.equal(allowed('internal.example', hostname, 80, '10.0.0.1'), false, hostname)
    }
  })

  it('takes an address entry for the address, whatever name led to it', () => {
    assert.equal(allowed('127.0.0.1', '127.0.0.1', 80, '127.0.0.1'), true)
    assert.equal(allowed('127.0.0.1:80', 'rebound.example', 80, '127.0.0.1'), true)
    assert.equal(allowed('127.0.0.1', '127.0.0.1', 80, '127.0.0.2'), false)
    assert.equal(allowed('127.0.0.1', '::ffff:7f00:1', 80, '::ffff:7f00:1'), true)
    assert.equal(allowed('::ffff:127.0.0.1', '127.0.0.1', 80, '127.0.0.1'), true)
  })

  it('takes IPv6 with and without brackets', () => {
    assert.equal(allowed('::1', '[::1]', 80, '::1'), true)
    assert.equal(allowed('[::1]', '[::1]', 8080, '0:0:0:0:0:0:0:1'), true)
    assert.equal(allowed('[::1]:80', '[::1]', 80, '::1'), true)
    assert.equal(allowed('[::1]:80', '[::1]', 81, '::1'), false)
  })

  it('takes a subnet to its edges and not beyond, one family at a time', () => {
    assert.equal(allowed('10.0.0.0/9', 'a.example', 80, '10.127.255.255'), true)
    assert.equal(allowed('10.0.0.0/9', 'a.example', 80, '10.128.0.0'), false)
    assert.equal(allowed('10.0.0.0/9', 'a.example', 80, '::ffff:10.0.0.1'), true)
    assert.equal(allowed('fd00::/8', 'a.example', 80, 'fdff::1'), true)
    assert.equal(allowed('fd00::/8', 'a.example', 80, 'fc00::1'), false)
    assert.equal(allowed('::/0', 'a.example', 80, '10.0.0.1'), false)
    assert.equal(allowed('0.0.0.0/0', 'a.example', 80, 'fd00::1'), false)
  })

  it('never takes an address with a zone, or none, for a subnet', () => {
    assert.equal(allowed('fe80::/10', 'a.example', 80, 'fe80::1%eth0'), false)
    assert.equal(allowed('0.0.0.0/0,::/0', 'a.example', 80, ''), false)
  })
})

describe('parseAllowList', () => {
  it('reads an empty setting as an empty list, and several entries with spaces', () => {
    assert.deepEqual(parseAllowList(''), [])
    assert.deepEqual(parseAllowList('  '), [])
    assert.equal(
      parseAllowList(' internal.example , 127.0.0.1:65535, [::1]:1,10.0.0.0/32, fd00::/128 ').length,
      5,
    )
  })

  const bad = [
    'localhost:0',
    'localhost:65536',
    'localhost:',
    'localhost:http',
    'localhost:+80',
    '[::1]:99999',
    '[::1',
    '::1]',
    '[127.0.0.1]:80',
    '[localhost]',
    'fe80::1%eth0',
    '[fe80::1%eth0]:80',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0/8',
    'fd00::/129',
    '::ffff:10.0.0.0/104',
    'internal.example/8',
    'http://internal.example',
    '*.internal.example',
    'user@internal.example',
    'a..b',
    '0x7f.1',
    '2130706433',
    '999.1.1.1',
    'two words',
    ':80',
  ]
  for (const entry of bad) {
    it(`refuses "${entry}" and names it`, () => {
      const namesIt = (error: Error): boolean => error.message.startsWith(`"${entry}": `)
      assert.throws(() => parseAllowList(`ok.example,${entry}`), namesIt)
    })
  }

  for (const text of [',', 'a.example,', ',a.example', 'a.example,,b.example', 'a.example, ,b.example']) {
    it(`refuses the empty entry in "${text}"`, () => {
      assert.throws(() => parseAllowList(text), /^Error: "": an entry between commas is empty/)
    })
  }
})
