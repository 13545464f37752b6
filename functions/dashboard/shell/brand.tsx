export const Brand = () => (
  <a class="brand" href="#/">
    <svg viewBox="0 0 24 24" width="28" height="28" aria-hidden="true">
      <rect width="24" height="24" rx="6" />
      <path d="M6 8h12M6 12h8M6 16h4" />
    </svg>
    <span>SmartQueue</span>
  </a>
)
