/** The sprite: 16 px line icons, 12 px type glyphs and the hatch pattern, once a page. */
import { raw } from "hono/html";

const icons = {
  memories:
    '<rect x="2.5" y="5.5" width="11" height="8" rx="1.5"/><path d="M4.5 3h7M5.25 8.5h5.5M5.25 10.75h3.5"/>',
  playground:
    '<path d="M5.75 2.5h4.5M6.5 2.5v3.75L3 12.1a1 1 0 0 0 .9 1.4h8.2a1 1 0 0 0 .9-1.4L9.5 6.25V2.5M5 10h6"/>',
  engine:
    '<rect x="4.5" y="4.5" width="7" height="7" rx="1.25"/><path d="M6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14"/>',
  activity: '<path d="M1.5 8.5h2.75L6.25 3l3.25 10 2-4.5h3"/>',
  settings:
    '<path d="M2 4.75h6.25M11.75 4.75H14M2 11.25h2.25M7.75 11.25H14"/><circle cx="10" cy="4.75" r="1.75"/><circle cx="6" cy="11.25" r="1.75"/>',
  search: '<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3 3"/>',
  plus: '<path d="M8 3v10M3 8h10"/>',
  x: '<path d="m4 4 8 8M12 4l-8 8"/>',
  check: '<path d="m3 8.5 3.25 3.25L13 4.75"/>',
  edit: '<path d="M10.75 2.75 13.25 5.25 5.75 12.75H3.25v-2.5zM9 4.5 11.5 7"/>',
  trash: '<path d="M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.5 9h7l.5-9M6.75 7v4M9.25 7v4"/>',
  pin: '<path d="M8 10v4M5.5 2.5h5M6.25 2.5v4L4.5 10h7L9.75 6.5v-4"/>',
  more: '<path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2"/>',
  copy: '<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5"/>',
  download: '<path d="M8 2.5V10M5 7l3 3 3-3M3 13.5h10"/>',
  upload: '<path d="M8 10V2.5M5 5.5l3-3 3 3M3 13.5h10"/>',
  down: '<path d="m4.5 6.5 3.5 3.5 3.5-3.5"/>',
  right: '<path d="m6.5 4.5 3.5 3.5-3.5 3.5"/>',
  left: '<path d="M9.5 4.5 6 8l3.5 3.5"/>',
  undo: '<path d="M5.5 3 2.75 5.75 5.5 8.5M2.75 5.75H9.5a3.75 3.75 0 0 1 0 7.5H6"/>',
  alert: '<path d="M8 2.5 14.25 13.5H1.75zM8 6.5v3.25M8 11.6v.01"/>',
  info: '<circle cx="8" cy="8" r="5.75"/><path d="M8 7.5V11M8 5.1v.01"/>',
  key: '<circle cx="5.25" cy="10.75" r="2.75"/><path d="m7.25 8.75 6-6M10.75 5.25l2 2"/>',
  logout: '<path d="M6.5 3H3v10h3.5M10.25 5l3 3-3 3M13 8H6.5"/>',
  archive: '<path d="M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3"/>',
  refresh: '<path d="M13.25 8A5.25 5.25 0 1 1 11.6 4.2M13.25 2.25v3h-3"/>',
  inbox: '<path d="m2.5 9 2-6h7l2 6v4.5h-11zM2.5 9h3.25l1 1.75h2.5l1-1.75h3.25"/>',
  theme: '<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5a5.5 5.5 0 0 1 0 11z" fill="currentColor"/>',
  sun: '<circle cx="8" cy="8" r="2.75"/><path d="M8 1.75v1.5M8 12.75v1.5M1.75 8h1.5M12.75 8h1.5M3.6 3.6l1.05 1.05M11.35 11.35l1.05 1.05M3.6 12.4l1.05-1.05M11.35 4.65l1.05-1.05"/>',
  moon: '<path d="M13.25 9.75A5.5 5.5 0 0 1 6.25 2.75a5.5 5.5 0 1 0 7 7z"/>',
  play: '<path d="M5 3.25v9.5L12.75 8z"/>',
  link: '<path d="M6.75 9.25 9.25 6.75M7 4.75l1.4-1.4a3 3 0 0 1 4.25 4.25L11.25 9M9 11.25l-1.4 1.4a3 3 0 0 1-4.25-4.25L4.75 7"/>',
};

const glyphs = {
  factual: '<circle cx="6" cy="6" r="4.25"/>',
  episodic:
    '<circle cx="6" cy="6" r="3.75" fill="none" stroke-width="1.25"/><path d="M6 2.25a3.75 3.75 0 0 0 0 7.5z"/>',
  procedural: '<path d="M2.75 1.75 10.25 6l-7.5 4.25z"/>',
  semantic: '<path d="M6 1.6 10.4 6 6 10.4 1.6 6z" fill="none" stroke-width="1.25"/>',
};

export type IconName = keyof typeof icons;
export type GlyphName = keyof typeof glyphs;

const symbol =
  (prefix: string, box: number) =>
  ([name, path]: [string, string]) =>
    `<symbol id="${prefix}-${name}" viewBox="0 0 ${box} ${box}">${path}</symbol>`;

const sprite = raw(
  `<svg class="sprite" aria-hidden="true">${Object.entries(icons).map(symbol("i", 16)).join("")}${Object.entries(
    glyphs,
  )
    .map(symbol("t", 12))
    .join(
      "",
    )}<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="5" height="5"/><path class="hatch-line" d="M0 0v5"/></pattern></svg>`,
);

export const Sprite = () => sprite;

export const Icon = ({ name, end = false }: { name: IconName; end?: boolean }) => (
  <svg class={end ? "icon icon-end" : "icon"} aria-hidden="true">
    <use href={`#i-${name}`} />
  </svg>
);

export const Glyph = ({ type }: { type: GlyphName }) => (
  <svg class="glyph" aria-hidden="true">
    <use href={`#t-${type}`} />
  </svg>
);

/** A memory's type: shape and word. */
export const TypeWord = ({ type }: { type: GlyphName }) => (
  <span class="memory-type">
    <Glyph type={type} />
    {type}
  </span>
);

export const BrandMark = () => (
  <svg class="brand-mark" viewBox="0 0 22 22" aria-hidden="true">
    <path d="M17.4 5.6A8.4 8.4 0 1 0 19.4 11" />
    <circle class="brand-dot" cx="11" cy="11" r="3.1" />
  </svg>
);
