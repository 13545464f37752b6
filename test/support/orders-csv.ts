import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const ROWS_PER_CHUNK = 500

export const ORDERS_TABLE = `
  create table orders (
    id bigint, customer text, amount numeric, status text, paid_at timestamptz, country text, city text
  )`

/** Serves CSV of as many orders as the path says, made on the fly: `/1000000` is about 75 MB. */
export const serveOrders = async () => {
  const server = createServer((request, response) => void send(response, Number(request.url?.slice(1))))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    urlOf: (rows: number) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${rows}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const send = async (response: ServerResponse, rows: number): Promise<void> => {
  response.write('id,customer,amount,status,paid_at,country,city\n')
  for (let n = 0; n < rows; n += ROWS_PER_CHUNK) {
    let chunk = ''
    for (let id = n; id < Math.min(rows, n + ROWS_PER_CHUNK); id++) chunk += order(id)
    if (!response.write(chunk)) await untilDrained(response)
    if (response.destroyed) return
  }
  response.end()
}

const untilDrained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    response.on('drain', go).on('close', go)
  })

/** One in ten is not paid. */
const order = (id: number): string => {
  const day = String((id % 28) + 1).padStart(2, '0')
  const status = id % 10 === 0 ? 'open' : 'paid'
  return `${id},customer-${id % 1000},${(id % 10_000) / 100},${status},2026-01-${day}T10:00:00Z,Country ${id % 50},"City, ${id % 9}"\n`
}
