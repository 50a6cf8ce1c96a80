// What the pictures are filled with: states of memory, and streams. A fill is a colour and a pattern. Two fills that may lie side by side
// differ in their pattern, or in their lightness by 3 to 1: never in hue alone. A colour has one meaning on the whole page. A test holds
// this against the colours of page.css.

export const fills = {
  "live": { colour: "live", pattern: "solid" },
  "pending": { colour: "pending", pattern: "stripes" },
  "cached": { colour: "cached", pattern: "solid" }, // both of the following
  "cached-block": { colour: "cached", pattern: "dots" },
  "cached-range": { colour: "cached", pattern: "solid" },
  "set-aside": { colour: "set-aside", pattern: "lines" },
  "busy": { colour: "busy", pattern: "lattice" },
  "lent": { colour: "lent", pattern: "bars" },
  "shared": { colour: "shared", pattern: "grid" }, // with other processes
  "free": { colour: "free", pattern: "hollow" },
  "stream-1": { colour: "stream-1", pattern: "solid" },
  "stream-2": { colour: "stream-2", pattern: "solid" },
  "stream-3": { colour: "stream-3", pattern: "solid" },
  "stream-4": { colour: "stream-4", pattern: "solid" },
  "stream-5": { colour: "stream-5", pattern: "solid" },
  "stream-6": { colour: "stream-6", pattern: "solid" },
  "stream-other": { colour: "stream-other", pattern: "solid" },
};

// tile is the side of the square that a pattern repeats, in points; tiles are its lines, in the colour of the card.
export const tile = 8;
export const tiles = {
  solid: "",
  stripes: "M-2,2L2,-2M-2,10L10,-2M6,10L10,6",
  dots: "M1.2,2H2.8M5.2,6H6.8",
  lines: "M0,2H8M0,6H8",
  bars: "M2,0V8M6,0V8",
  grid: "M0,2H8M0,6H8M2,0V8M6,0V8",
  lattice: "M-2,2L2,-2M-2,10L10,-2M6,10L10,6M-2,6L2,10M-2,-2L10,10M6,-2L10,2",
};

// ofSample are the states of the time line, the lowest first.
export const ofSample = [
  { name: "Live", fill: "live", field: "liveBytes", of: "in buffers" },
  { name: "Pending", fill: "pending", field: "pendingBytes", of: "freed, still used by other streams" },
  { name: "Cached", fill: "cached", field: "cachedBytes", of: "free, kept by streams" },
  { name: "Set aside", fill: "set-aside", field: "setAsideBytes", of: "of reservations, not drawn yet" },
  { name: "Free", fill: "free", field: "freeBytes", of: "free in the pool" },
];

// ofMap are the states of the map. A mixed range is drawn as a stack of them.
export const ofMap = {
  "live": { name: "Live", field: "liveBytes" },
  "pending": { name: "Pending", field: "pendingBytes" },
  "cached-block": { name: "Cached in magazines", field: "cachedBlockBytes" },
  "cached-range": { name: "Cached in free ranges", field: "cachedRangeBytes" },
  "set-aside": { name: "Set aside", field: "setAsideBytes" },
  "busy": { name: "In a driver job", field: "busyBytes" },
  "lent": { name: "Lent to a stream", field: "lentBytes" },
  "free": { name: "Free in the pool", field: "freeBytes" },
};

const streamFills = 6;

// StreamFills gives fills of their own to the streams with the most bytes. A stream keeps its fill while it is among twice as many.
export class StreamFills {
  of = new Map(); // stream to fill

  update(bytesOf) { // stream to bytes
    const order = [...bytesOf.keys()].filter((s) => s !== 0).sort((a, b) => bytesOf.get(b) - bytesOf.get(a) || a - b);
    const near = new Set(order.slice(0, 2 * streamFills));
    for (const s of this.of.keys()) if (!near.has(s)) this.of.delete(s);
    for (const s of order.slice(0, streamFills)) {
      if (this.of.has(s) || this.of.size === streamFills) continue;
      const taken = new Set(this.of.values());
      for (let i = 1; !this.of.has(s); i++) if (!taken.has(`stream-${i}`)) this.of.set(s, `stream-${i}`);
    }
  }

  fill(stream) { return stream === 0 ? "free" : this.of.get(stream) ?? "stream-other"; }
}
