// Figures as text, and small helpers for elements.

import { fills, tile, tiles } from "./states.js";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// bytes is a size in powers of 1024 with one decimal at most: "512 B", "1.5 GiB".
export function bytes(n) {
  let value = n, unit = 0;
  while (Math.round(value * 10) >= 10240 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Math.round(value * 10) / 10} ${units[unit]}`;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => (n < 100000 ? whole.format(n) : compact.format(n));
export const things = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
export const percent = (x) => `${(Math.floor(x * 1000) / 10).toFixed(1)} %`;

// seconds is a duration: "850 µs", "12 ms", "3.4 s", "2 min 5 s".
export function seconds(s) {
  if (s === 0) return "0 s";
  if (s < 1e-3) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${Math.round(s * 1e3)} ms`;
  if (s < 60) return `${Math.round(s * 10) / 10} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

export const clock = (millis) => new Date(millis).toLocaleTimeString("en-GB");
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const byId = (id) => document.getElementById(id);

// text changes an element's text where it differs, so that nothing is read out or selected anew without need.
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

export function make(tag, className, value) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (value !== undefined) e.textContent = value;
  return e;
}

export function svg(tag, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

// paint gives an element the colour and the pattern of a fill.
export function paint(element, name) {
  if (element.dataset.fill === name) return;
  if (element.dataset.fill) element.classList.remove(`pattern-${fills[element.dataset.fill].pattern}`);
  element.dataset.fill = name;
  element.classList.add(`pattern-${fills[name].pattern}`);
  element.style.setProperty("--fill", `var(--${fills[name].colour})`);
}

export function swatch(name) {
  const e = make("span", "swatch");
  e.setAttribute("aria-hidden", "true");
  if (fills[name]) paint(e, name);
  else e.classList.add(name); // a line, or a swatch of its own
  return e;
}

// svgFills are the fills as patterns of a picture: fill="url(#fill-live)".
export function svgFills(names) {
  const defs = svg("defs", {});
  for (const name of names) {
    const { colour: of, pattern } = fills[name];
    const p = svg("pattern", { id: `fill-${name}`, width: tile, height: tile, patternUnits: "userSpaceOnUse" });
    const ground = svg("rect", { width: tile, height: tile });
    ground.style.fill = pattern === "hollow" ? "var(--card)" : `var(--${of})`;
    p.append(ground, svg("path", { class: "tile", d: tiles[pattern] ?? "" }));
    defs.append(p);
  }
  return defs;
}

// CanvasFills are the fills as patterns of a canvas.
export class CanvasFills {
  made = {};

  constructor(context, ratio) { Object.assign(this, { context, ratio }); }

  get(name) { return (this.made[name] ??= this.make(name)); }

  colour(name) { return (this.made[`--${name}`] ??= colour(name)); }

  make(name) {
    const { colour: of, pattern } = fills[name];
    if (!tiles[pattern]) return this.colour(pattern === "hollow" ? "card" : of);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.round(tile * this.ratio);
    const c = canvas.getContext("2d"), scale = canvas.width / tile;
    c.scale(scale, scale);
    c.fillStyle = this.colour(of);
    c.fillRect(0, 0, tile, tile);
    c.strokeStyle = this.colour("card");
    c.lineWidth = 1.4;
    c.stroke(new Path2D(tiles[pattern]));
    const repeated = this.context.createPattern(canvas, "repeat");
    repeated.setTransform(new DOMMatrix().scale(1 / scale));
    return repeated;
  }
}

// children gives a parent that many children; make makes one.
export function children(parent, size, made) {
  while (parent.children.length > size) parent.lastElementChild.remove();
  while (parent.children.length < size) parent.append(made(parent.children.length));
  return parent.children;
}

// rows fills a table's body: each item is the texts of a row, the first of which is its heading.
export function rows(body, items, classes = []) {
  const all = children(body, items.length, () => document.createElement("tr"));
  items.forEach((cells, i) => {
    const names = body.parentElement.tHead.rows[0].cells;
    const own = children(all[i], cells.length, (at) => {
      const e = make(at === 0 ? "th" : "td", classes[at]);
      if (at === 0) e.scope = "row";
      e.dataset.name = names[at].textContent; // shown beside the value where the heading is not
      return e;
    });
    cells.forEach((value, at) => {
      if (typeof value === "function") value(own[at]);
      else text(own[at], value);
    });
  });
}

// bar fills a stacked bar with parts of a whole: [{name, fill, value}].
export function bar(element, parts, total, label) {
  const shown = parts.filter((p) => p.value > 0);
  const all = children(element, shown.length, () => document.createElement("i"));
  shown.forEach((p, i) => {
    paint(all[i], p.fill);
    all[i].style.width = `${total > 0 ? (100 * p.value) / total : 0}%`;
  });
  if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
}

// length fills a bar with one measure, a share of 1.
export function length(element, share) {
  const [part] = children(element, 1, () => make("i", "measure"));
  part.style.width = `${100 * share}%`;
}

// place puts a tip beside a point of its parent, inside of that.
export function place(tip, x, y) {
  tip.hidden = false;
  const room = tip.parentElement.clientWidth;
  const left = x + 14 + tip.offsetWidth > room ? Math.max(0, x - 14 - tip.offsetWidth) : x + 14;
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(y)}px)`;
}
