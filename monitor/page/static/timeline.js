// The time line: a stacked area of the memory by state, with the limit, a cursor and a table.

import { byId, bytes, clock, make, place, rows, svg, svgFills, swatch, text } from "./format.js";
import { ofSample } from "./states.js";

const margin = { left: 62, right: 10, top: 10, bottom: 24 };
const tableRows = 30;
const shortest = 60000; // milliseconds, of a time line

// ticks are a few round values from 0 to the top.
function ticks(most) {
  const step = 2 ** Math.ceil(Math.log2(most / 5));
  const all = [];
  for (let v = 0; v < most + step; v += step) all.push(v);
  return all;
}

export class Timeline {
  points = []; // {millis, figures}, the oldest first
  lengthSeconds = 300;
  intervalMillis = 1000;
  cursor = null; // millis of a point

  constructor() {
    this.box = byId("time");
    this.tip = this.box.querySelector(".tip");
    this.svg = svg("svg", { "aria-hidden": "true", focusable: "false" });
    this.box.prepend(this.svg);
    for (const s of [...ofSample, { name: "Limit", fill: "line" }]) {
      const li = make("li");
      li.append(swatch(s.fill), s.name);
      byId("time-legend").append(li);
    }
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("pointermove", (e) => this.point(e));
    this.box.addEventListener("pointerdown", (e) => this.point(e));
    this.box.addEventListener("pointerleave", () => this.select(null));
    this.box.addEventListener("blur", () => this.select(null));
    this.box.addEventListener("keydown", (e) => this.key(e));
    for (const button of byId("time-length").children) {
      button.addEventListener("click", () => {
        this.lengthSeconds = Number(button.dataset.seconds);
        for (const b of byId("time-length").children) b.setAttribute("aria-pressed", String(b === button));
        this.draw();
      });
    }
  }

  // shown are the points of the chosen length.
  shown() {
    const last = this.points.at(-1)?.millis ?? 0;
    return this.lengthSeconds === 0 ? this.points : this.points.filter((p) => p.millis >= last - 1000 * this.lengthSeconds);
  }

  draw() {
    const width = this.box.clientWidth, height = this.box.clientHeight, shown = this.shown();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(svgFills(ofSample.map((s) => s.fill)));
    const begins = byId("time-begins");
    begins.hidden = shown.length > 1;
    if (shown.length === 1) text(begins, "The time line begins here: it grows with each sample.");
    if (width === 0 || shown.length === 0) return;
    const end = shown.at(-1).millis;
    const begin = Math.min(shown[0].millis, end - shortest); // a short history fills the width
    const most = Math.max(1024, ...shown.map((p) => this.sum(p)));
    const limit = shown.at(-1).figures.limitBytes;
    const near = limit > 0 && limit <= 2 * most;
    const values = ticks(near ? Math.max(most, limit) : most);
    const top = Math.max(values.at(-1), 1.05 * (near ? limit : most)); // room above the limit
    this.x = (millis) => margin.left + ((millis - begin) / (end - begin)) * (width - margin.left - margin.right);
    this.y = (value) => height - margin.bottom - (value / top) * (height - margin.top - margin.bottom);
    this.axes(values, begin, end, width, height);
    this.areas(shown);
    if (near) this.svg.append(svg("path", { class: "limit", d: `M${margin.left},${this.y(limit)}H${width - margin.right}` }));
    this.line = svg("path", { class: "cursor", d: "" });
    this.svg.append(this.line);
    this.select(this.cursor, false);
    this.table(shown);
  }

  sum(p) { return ofSample.reduce((n, s) => n + p.figures[s.field], 0); }

  axes(values, begin, end, width, height) {
    for (const v of values) {
      this.svg.append(svg("path", { class: "gridline", d: `M${margin.left},${this.y(v)}H${width - margin.right}` }));
      const label = svg("text", { x: margin.left - 8, y: this.y(v) + 4, "text-anchor": "end" });
      label.textContent = bytes(v);
      this.svg.append(label);
    }
    const span = (end - begin) / 1000;
    const step = [10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200].find((s) => span / s <= (width < 500 ? 3 : 6)) ?? 14400;
    for (let s = 0; s <= span - step * 0.2; s += step) {
      const label = svg("text", { x: this.x(end - 1000 * s), y: height - 6, "text-anchor": s === 0 ? "end" : "middle" });
      label.textContent = s === 0 ? "now" : s < 60 ? `−${s} s` : `−${Math.round(s / 6) / 10} min`;
      this.svg.append(label);
    }
  }

  // areas draws the states on top of each other. Where nobody watched for a while there is a gap.
  areas(shown) {
    const parts = [];
    let begin = 0;
    for (let i = 1; i <= shown.length; i++) {
      if (i === shown.length || shown[i].millis - shown[i - 1].millis > 3 * this.intervalMillis) {
        parts.push(shown.slice(begin, i));
        begin = i;
      }
    }
    for (const part of parts) {
      let below = part.map(() => 0);
      const xs = part.map((p) => this.x(p.millis).toFixed(1));
      if (part.length === 1) xs[0] = (Number(xs[0]) - 1).toFixed(1);
      const edge = (heights, order) => order.map((i) => `${xs[i]},${this.y(heights[i]).toFixed(1)}`).join("L");
      const forth = part.map((_, i) => i), back = [...forth].reverse();
      for (const s of ofSample) {
        const above = part.map((p, i) => below[i] + p.figures[s.field]);
        if (part.some((p) => p.figures[s.field] > 0)) {
          this.svg.append(svg("path", { class: "area", d: `M${edge(above, forth)}L${edge(below, back)}Z`, fill: `url(#fill-${s.fill})` }));
        }
        below = above;
      }
      this.svg.append(svg("path", { class: "top", d: `M${edge(below, forth)}` }));
    }
  }

  point(e) {
    const shown = this.shown();
    if (shown.length === 0 || !this.x) return;
    const at = e.clientX - this.box.getBoundingClientRect().left;
    const nearest = shown.reduce((a, b) => (Math.abs(this.x(b.millis) - at) < Math.abs(this.x(a.millis) - at) ? b : a));
    this.select(nearest.millis, false);
  }

  key(e) {
    const shown = this.shown();
    const at = this.cursor === null ? shown.length : shown.findIndex((p) => p.millis >= this.cursor);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 30, PageDown: at + 30, Home: 0, End: shown.length - 1 }[e.key];
    if (e.key === "Escape") this.select(null);
    if (to === undefined || shown.length === 0) return;
    e.preventDefault();
    this.select(shown[Math.max(0, Math.min(shown.length - 1, to))].millis, true);
  }

  // select puts the cursor at a point, and reads it out where a key has moved it.
  select(millis, aloud) {
    const p = millis === null ? undefined : this.shown().find((q) => q.millis === millis);
    this.cursor = p ? millis : null;
    if (!p || !this.line) {
      this.tip.hidden = true;
      this.line?.setAttribute("d", "");
      return;
    }
    const x = this.x(p.millis);
    this.line.setAttribute("d", `M${x},${margin.top}V${this.box.clientHeight - margin.bottom}`);
    const lines = [...ofSample.filter((s) => p.figures[s.field] > 0).map((s) => [s.name, p.figures[s.field]]), ["Reserved", p.figures.reservedBytes]];
    this.tip.replaceChildren(make("b", "", clock(p.millis)), ...lines.map(([name, value]) => {
      const line = make("span", "", name);
      line.append(make("b", "", bytes(value)));
      return line;
    }));
    place(this.tip, x, 6);
    if (aloud) text(byId("time-readout"), `${clock(p.millis)}: ${lines.map(([name, value]) => `${name} ${bytes(value)}`).join(", ")}`);
  }

  table(shown) {
    if (!byId("time-rows").closest("details").open) return;
    const every = Math.max(1, Math.ceil(shown.length / tableRows));
    const some = shown.filter((_, i) => (shown.length - 1 - i) % every === 0).reverse();
    rows(byId("time-rows"), some.map(({ millis, figures: f }) => [
      clock(millis), bytes(f.liveBytes), bytes(f.pendingBytes), bytes(f.cachedBytes), bytes(f.setAsideBytes), bytes(f.freeBytes),
      bytes(f.reservedBytes), String(f.waiting),
    ]));
  }
}
