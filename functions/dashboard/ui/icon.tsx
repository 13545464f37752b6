/** Strokes on a grid of 24. */
const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  jobs: 'M4 6h16M4 12h16M4 18h10',
  dead: 'M12 8v5M12 16.5v.5M10.3 4 2.6 17.5A2 2 0 0 0 4.300 20.500h15.400a2 2 0 0 0 1.700-3L13.700 4a2 2 0 0 0-3.400 0z',
  schedules: 'M12 7v5l3.500 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z',
  webhooks: 'M9 8a3 3 0 1 1 4.500 2.600L10 16.500M15 17a3 3 0 1 1-1.500-2.600M6 14a3 3 0 1 0 4 2.800h7',
  workers: 'M5 5h14v5H5zM5 14h14v5H5zM8.500 7.500h.01M8.500 16.500h.01',
  model: 'M4 19c4 0 4-14 8-14s4 14 8 14M4 19h16',
  organisation:
    'M16 20v-1.500a3.500 3.500 0 0 0-3.500-3.500h-5A3.500 3.500 0 0 0 4 18.500V20M10 11.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM20 20v-1.500a3.500 3.500 0 0 0-2.500-3.300M15 4.700a3.500 3.500 0 0 1 0 6.600',
  keys: 'M14.500 9.500 21 3M18 6l2.500 2.500M15.500 14a5.500 5.500 0 1 1-11 0 5.500 5.500 0 0 1 11 0z',
  audit: 'M8 4h8l4 4v12H4V4zM8 12h8M8 16h5',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.500 20a7.500 7.500 0 0 1 15 0',
  docs: 'M5 4h9l5 5v11H5zM14 4v5h5',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6 6 18',
  check: 'M5 12.500 10 17.500 19 7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  menu: 'M4 7h16M4 12h16M4 17h16',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.500v2M12 19.500v2M4.200 4.200l1.400 1.400M18.400 18.400l1.400 1.400M2.500 12h2M19.500 12h2M4.200 19.800l1.400-1.400M18.400 5.600l1.400-1.400',
  moon: 'M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500z',
  table: 'M4 5h16v14H4zM4 10h16M10 10v9',
  chart: 'M4 19h16M7 15l4-5 3 3 5-7',
  refresh: 'M20 11a8 8 0 1 0-2.300 6.300M20 5v6h-6',
  chevron: 'M9 6l6 6-6 6',
  down: 'M6 9l6 6 6-6',
  pause: 'M9 5v14M15 5v14',
  play: 'M7 5l11 7-11 7z',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4',
  out: 'M15 17l5-5-5-5M20 12H9M9 4H4v16h5',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  edit: 'M4 20h4L19 9l-4-4L4 16z',
} as const

export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
