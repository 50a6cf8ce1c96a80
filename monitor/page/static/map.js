// The memory map: every segment as a strip, in rows of the same length, each range in the colour of its state or its stream.

import { byId, bytes, CanvasFills, children, count, make, place, rows, swatch, text, things } from "./format.js";
import { fills, ofMap, StreamFills } from "./states.js";

const rowHeight = 20, rowGap = 7, segmentGap = 4, minRowBytes = 4 << 20;
const divider = 1; // points between two ranges, in the colour of the card

export class MemoryMap {
  map = null;
  by = "state";
  pieces = []; // {x, y, width, range, segment}: the parts of ranges, in the order of the map
  selected = -1; // index of a piece
  streamFills = new StreamFills();

  constructor() {
    this.box = byId("map");
    this.canvas = this.box.querySelector("canvas");
    this.tip = this.box.querySelector(".tip");
    new ResizeObserver(() => this.draw()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.box.addEventListener("pointermove", (e) => this.point(e));
    this.box.addEventListener("pointerdown", (e) => this.point(e));
    this.box.addEventListener("pointerleave", () => this.select(-1));
    this.box.addEventListener("blur", () => this.select(-1));
    this.box.addEventListener("keydown", (e) => this.key(e));
    byId("map-rows").closest("details").addEventListener("toggle", () => this.table());
    for (const button of byId("map-colours").children) {
      button.addEventListener("click", () => {
        this.by = button.dataset.by;
        for (const b of byId("map-colours").children) b.setAttribute("aria-pressed", String(b === button));
        this.legend();
        this.draw();
      });
    }
  }

  show(map) {
    this.map = map;
    const held = map !== null && map.segments.length > 0;
    this.box.hidden = !held;
    for (const id of ["map-readout", "map-legend", "map-table"]) byId(id).hidden = !held;
    byId("map-empty").hidden = held;
    text(byId("map-empty"), "No memory is held from the driver.");
    if (!held) {
      text(byId("map-facts"), "");
      return;
    }
    const total = map.segments.reduce((n, s) => n + s.bytes, 0);
    this.rowBytes = 2 ** Math.ceil(Math.log2(Math.max(minRowBytes, total / (this.box.clientWidth < 600 ? 12 : 8))));
    text(byId("map-facts"), `${things(map.segments.length, "segment")}, ${bytes(total)}; a row is ${bytes(this.rowBytes)}`);
    this.legend();
    this.draw();
    this.table();
  }

  legend() {
    if (!this.map) return;
    const t = this.map.total;
    const ranges = this.map.segments.flatMap((s) => s.ranges);
    let all;
    if (this.by === "state") {
      all = Object.entries(ofMap).filter(([, s]) => t[s.field] > 0).map(([name, s]) => [name, `${s.name} ${bytes(t[s.field])}`]);
      if (ranges.some((r) => r.mixed)) all.push(["mixed", `Several, each shorter than ${bytes(this.map.resolutionBytes)}`]);
    } else {
      const of = new Map();
      for (const r of ranges) of.set(streamOf(r), (of.get(streamOf(r)) ?? 0) + r.bytes);
      this.streamFills.update(of);
      const others = [...of.keys()].filter((s) => this.streamFills.fill(s) === "stream-other");
      all = [...of.keys()].filter((s) => this.streamFills.of.has(s)).sort((a, b) => a - b).map((s) => [this.streamFills.fill(s), `Stream ${s} ${bytes(of.get(s))}`]);
      if (others.length > 0) all.push(["stream-other", `${things(others.length, "other stream")} ${bytes(others.reduce((n, s) => n + of.get(s), 0))}`]);
      if (of.has(0)) all.push(["free", `No stream, or several ${bytes(of.get(0))}`]);
      if (ranges.some((r) => streamOf(r) !== 0 && !solid(r))) all.push(["outlined", "Outlined: not live"]);
    }
    if (t.sleepingBytes > 0) all.push(["asleep", `Asleep ${bytes(t.sleepingBytes)}`]);
    if (this.map.sharedBytes > 0) all.push(["shared", `Shared with other processes, in no segment ${bytes(this.map.sharedBytes)}`]);
    const items = children(byId("map-legend"), all.length, () => make("li"));
    all.forEach(([name, label], i) => {
      if (items[i].dataset.name !== name) {
        items[i].dataset.name = name;
        items[i].replaceChildren(swatch(name), make("span"));
      }
      text(items[i].lastElementChild, label);
    });
  }

  // layout places the pieces: a short segment is not broken where it fits into the next row.
  layout(width) {
    this.pieces = [];
    this.strips = [];
    const scale = width / this.rowBytes;
    let x = 0, row = 0;
    for (const segment of this.map.segments) {
      if (x > 0) x += segmentGap;
      const rest = width - x, length = segment.bytes * scale;
      if (x > 0 && (rest < 4 || (length > rest + 0.5 && rest < width / 2) || (length > rest + 0.5 && length <= width))) [x, row] = [0, row + 1];
      let stripX = x, first = this.pieces.length; // of the strip
      const y = () => row * (rowHeight + rowGap);
      for (const range of segment.ranges) {
        let left = range.bytes * scale;
        while (left > 0.01) {
          const part = Math.min(left, width - x);
          this.pieces.push({ x, y: y(), width: part, range, segment });
          x += part;
          left -= part;
          if (width - x < 0.01 && (left > 0.01 || range !== segment.ranges.at(-1))) {
            this.strips.push({ x: stripX, y: y(), width: x - stripX, first, end: this.pieces.length });
            [x, row, stripX, first] = [0, row + 1, 0, this.pieces.length];
          }
        }
      }
      this.strips.push({ x: stripX, y: y(), width: x - stripX, first, end: this.pieces.length });
    }
    return (row + 1) * (rowHeight + rowGap) - rowGap;
  }

  draw() {
    const width = this.box.clientWidth;
    if (!this.map || width === 0 || this.box.hidden) return;
    const before = this.pieces[this.selected]?.range;
    const height = this.layout(width);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const c = this.canvas.getContext("2d");
    c.scale(ratio, ratio);
    const ink = new CanvasFills(c, ratio);
    for (const s of this.strips) {
      c.save();
      c.beginPath();
      c.roundRect(s.x, s.y, Math.max(s.width, 1), rowHeight, Math.min(4, s.width / 2));
      c.clip();
      for (let i = s.first; i < s.end; i++) this.paint(c, this.pieces[i], ink);
      c.restore();
    }
    if (before) this.selected = this.pieces.findIndex((p) => p.range.offsetBytes === before.offsetBytes && p.segment.address === this.selectedAddress);
    this.outline(c, ink);
  }

  paint(c, p, ink) {
    const { range: r } = p, x = Math.round(p.x * 2) / 2, width = Math.max(Math.round((p.x + p.width) * 2) / 2 - x, 0.5);
    const inner = width > 3 ? width - divider : width;
    if (this.by === "stream") {
      this.paintStream(c, x, p.y, inner, r, ink);
    } else if (r.mixed) {
      let y = p.y;
      for (const [name, s] of Object.entries(ofMap)) {
        const part = (rowHeight * (r.mixed[s.field] ?? 0)) / r.bytes;
        if (part > 0) block(c, x, y, inner, part, name, ink);
        y += part;
      }
    } else {
      block(c, x, p.y, inner, rowHeight, r.state, ink);
    }
    if (inner < width) { // neighbours of one fill are told apart
      c.fillStyle = ink.colour("card");
      c.fillRect(x + inner, p.y, width - inner, rowHeight);
    }
    if (r.asleep) {
      c.strokeStyle = ink.colour("card");
      c.lineWidth = 2;
      c.beginPath();
      for (let at = x - rowHeight; at < x + width; at += 6) {
        c.moveTo(Math.max(at, x), p.y + rowHeight - Math.max(0, x - at));
        c.lineTo(Math.min(at + rowHeight, x + width), p.y + Math.max(0, at + rowHeight - x - width));
      }
      c.stroke();
    }
  }

  // paintStream fills what lives, and outlines the rest. The number of the stream stands in ranges that are long enough.
  paintStream(c, x, y, width, r, ink) {
    const stream = streamOf(r), name = this.streamFills.fill(stream);
    if (solid(r) && stream !== 0) {
      c.fillStyle = ink.get(name);
      c.fillRect(x, y, width, rowHeight);
    } else {
      outlined(c, x, y, width, rowHeight, name, ink);
    }
    const label = String(stream);
    if (stream === 0 || width < 10 + 7 * label.length) return;
    c.fillStyle = solid(r) ? ink.colour("card") : ink.colour(fills[name].colour);
    c.font = "600 11px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillText(label, x + 5, y + rowHeight / 2 + 0.5);
  }

  outline(c, ink) {
    const p = this.pieces[this.selected];
    if (!p) return;
    c.strokeStyle = ink.colour("text");
    c.lineWidth = 2;
    for (const q of this.pieces) {
      if (q.range === p.range) c.strokeRect(q.x + 1, q.y + 1, Math.max(q.width - 2, 1), rowHeight - 2);
    }
  }

  point(e) {
    const box = this.box.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    this.select(this.pieces.findIndex((p) => p.x <= x && x < p.x + p.width && p.y - rowGap / 2 <= y && y < p.y + rowHeight + rowGap / 2));
  }

  key(e) {
    const last = this.pieces.length - 1, at = this.selected, p = this.pieces[at];
    const row = (step) => {
      if (!p) return 0;
      const y = p.y + step * (rowHeight + rowGap), middle = p.x + p.width / 2;
      const to = this.pieces.findLastIndex((q) => q.y === y && q.x <= middle);
      return to < 0 ? at : to;
    };
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: row(-1), ArrowDown: row(1), Home: 0, End: last }[e.key];
    if (e.key === "Escape") this.select(-1);
    if (to === undefined || last < 0) return;
    e.preventDefault();
    this.select(Math.max(0, Math.min(last, to)));
  }

  select(index) {
    if (index === this.selected) return;
    this.selected = index;
    const p = this.pieces[index];
    this.selectedAddress = p?.segment.address;
    this.draw();
    if (!p) {
      this.tip.hidden = true;
      return;
    }
    const said = describe(p);
    text(byId("map-readout"), said.join(" · "));
    this.tip.replaceChildren(make("b", "", said[0]), ...said.slice(1).map((line) => make("span", "", line)));
    place(this.tip, p.x + Math.min(p.width, 60) / 2, p.y + rowHeight + 4);
  }

  table() {
    if (!this.map || !byId("map-rows").closest("details").open) return;
    rows(byId("map-rows"), this.map.segments.map(({ address, bytes: length, handleCount, total: t }) => {
      const of = (...fields) => bytes(fields.reduce((n, f) => n + (t[f] ?? 0), 0));
      return [
        address, bytes(length), count(handleCount), of("liveBytes"), of("pendingBytes"), of("cachedBlockBytes", "cachedRangeBytes"),
        of("freeBytes"), of("setAsideBytes"), of("busyBytes", "lentBytes"),
      ];
    }), ["mono"]);
  }
}

// streamOf is the stream that a range belongs to; a reservation is none.
const streamOf = (r) => (r.state === "set-aside" ? 0 : r.stream ?? 0);
const solid = (r) => r.state === "live" || r.state === "mixed";

// block draws a piece in its fill; free memory is an outline.
function block(c, x, y, width, height, name, ink) {
  if (fills[name].pattern === "hollow") {
    outlined(c, x, y, width, height, name, ink);
    return;
  }
  c.fillStyle = ink.get(name);
  c.fillRect(x, y, width, height);
}

function outlined(c, x, y, width, height, name, ink) {
  c.fillStyle = ink.colour(fills[name].colour);
  c.fillRect(x, y, width, height);
  if (width <= 3 || height <= 3) return;
  c.fillStyle = ink.colour("card");
  c.fillRect(x + 1.25, y + 1.25, width - 2.5, height - 2.5);
}

// describe says what a range is, in short lines.
function describe({ range: r, segment }) {
  const at = `0x${(BigInt(segment.address) + BigInt(r.offsetBytes)).toString(16)}`;
  const lines = [`${r.mixed ? "Several states" : ofMap[r.state].name}, ${bytes(r.bytes)}`];
  if (r.mixed) {
    for (const s of Object.values(ofMap)) {
      if (r.mixed[s.field]) lines.push(`${s.name} ${bytes(r.mixed[s.field])}`);
    }
  }
  if (r.stream) lines.push(r.state === "free" ? `for stream ${r.stream} until its work has finished` : r.state === "set-aside" ? `reservation ${r.stream}` : `stream ${r.stream}`);
  if (r.bufferCount) lines.push(things(r.bufferCount, "buffer"));
  if (r.tag) lines.push(`tag ${r.tag}`);
  if (r.asleep) lines.push("asleep");
  lines.push(`at ${at}`);
  return lines;
}
