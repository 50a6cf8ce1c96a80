// The page: it puts each sample into its places, and reads the memory map and the call stacks after it.

import { bar, byId, bytes, children, count, make, percent, rows, seconds, svg, swatch, text, things } from "./format.js";
import { feed } from "./feed.js";
import { MemoryMap } from "./map.js";
import { ofSample } from "./states.js";
import { Timeline } from "./timeline.js";

const mostPoints = 5000; // kept here; the server keeps fewer
const levels = [
  { name: "Magazine", colour: "hit", field: "magazineHits" },
  { name: "Stream", colour: "hit-range", field: "streamHits" },
  { name: "Pool", colour: "hit-pool", field: "poolHits" },
  { name: "Driver", colour: "hit-driver", field: "driverMisses" },
];
const statusTexts = { connecting: "Connecting", live: "Live", retrying: "Connecting again", paused: "Paused", closed: "Closed" };

const timeline = new Timeline(), map = new MemoryMap();
let points = []; // {unixMillis, devices}, as the server has them
let sample = null, device = 0, asking = false, callsAsked = 0;

// status shows how the page stands. It is read out where it changes.
function status(state) {
  const closed = state === "live" && sample?.devices[device]?.state === "closed";
  byId("status").dataset.state = closed ? "closed" : state;
  text(byId("status"), statusTexts[closed ? "closed" : state]);
}

function notice(value, kind) {
  byId("notice").hidden = !value;
  byId("notice").dataset.kind = kind ?? "";
  text(byId("notice"), value);
}

// rate is how much a figure rises in a second, by the last two points.
function rate(field) {
  const [a, b] = points.slice(-2);
  if (!a || !b || b.unixMillis <= a.unixMillis || !a.devices[device]) return 0;
  return Math.max(0, (1000 * (b.devices[device][field] - a.devices[device][field])) / (b.unixMillis - a.unixMillis));
}

function showDevice(d) {
  text(byId("device-name"), d.name || `Device ${d.index}`);
  const facts = [d.driver && `driver ${d.driver}`, d.totalBytes && `${bytes(d.totalBytes)} of memory`, d.state !== "in use" && d.state];
  text(byId("device-facts"), facts.filter(Boolean).join(", ") || "in use");
  const all = children(byId("device"), sample.devices.length, (i) => {
    const option = make("option");
    option.value = String(i);
    return option;
  });
  sample.devices.forEach((one, i) => text(all[i], `${one.index}: ${one.name || "device"}`));
  byId("device-pick").hidden = sample.devices.length < 2;
  const texts = {
    closed: "The device is closed. The figures are the last before its Close, and its memory went back to the driver.",
    unused: "No call has used the device yet. The figures come with its first stream.",
    "not open": "The device is not open.",
  };
  if (d.panics > 0) notice(`${things(d.panics, "panic")} recovered: each is a defect. Config.Events.Panic has the stacks.`, "closed");
  else notice(texts[d.state] ?? "", d.state);
  document.title = `${bytes(d.figures.liveBytes)} live – vram`;
}

function showNow(d) {
  const f = d.figures, whole = Math.max(f.limitBytes, f.reservedBytes);
  text(byId("reserved"), bytes(f.reservedBytes));
  text(byId("limit"), f.limitBytes > 0 ? bytes(f.limitBytes) : "no limit");
  const parts = ofSample.map((s) => ({ name: s.name, colour: s.colour, value: f[s.field] }));
  const unknown = f.reservedBytes + f.sleepingBytes - parts.reduce((n, p) => n + p.value, 0);
  if (unknown > 0) parts.push({ name: "In a driver job", colour: "busy", value: unknown });
  bar(byId("now-bar"), parts, whole, `Of a limit of ${bytes(f.limitBytes)}: ${parts.filter((p) => p.value > 0).map((p) => `${p.name} ${bytes(p.value)}`).join(", ") || "nothing is reserved"}`);
  const cells = children(byId("now-states"), ofSample.length, (i) => {
    const e = make("div"), dt = make("dt");
    dt.append(swatch(ofSample[i].colour), ofSample[i].name);
    dt.title = ofSample[i].of;
    const dd = make("dd");
    dd.append(make("span"), make("small"));
    e.append(dt, dd);
    return e;
  });
  ofSample.forEach((s, i) => {
    const [value, share] = cells[i].lastElementChild.children;
    text(value, bytes(f[s.field]));
    text(share, whole > 0 ? percent(f[s.field] / whole) : "");
  });
  text(byId("peak-live"), bytes(d.peakLiveBytes));
  text(byId("efficiency"), `${percent(d.efficiency)} of peak reserved`);
  text(byId("largest"), bytes(d.largestFreeBytes));
  text(byId("fragmentation"), `fragmentation ${percent(d.fragmentation)}`);
  text(byId("hit-rate"), percent(d.hitRate));
  text(byId("alloc-rate"), `${count(Math.round(rate("allocCount")))} allocations/s`);
  text(byId("waiting"), count(f.waiting));
  text(byId("demand"), f.waiting > 0 ? `for ${bytes(f.waitDemandBytes)}` : `${count(d.waitCount)} waited so far`);
  text(byId("pressure"), d.pressure);
  byId("pressure").dataset.level = d.pressure;
  text(byId("rises"), d.pressureRises === 0 ? "never rose" : d.pressureRises === 1 ? "rose once" : `rose ${count(d.pressureRises)} times`);
  text(byId("driver-calls"), count(d.driverCalls));
  text(byId("driver-time"), `${seconds(d.driverSeconds)} in them`);
}

function showServed(d) {
  const f = d.figures, total = f.allocCount;
  const parts = levels.map((l) => ({ name: l.name, colour: l.colour, value: f[l.field] }));
  bar(byId("served-bar"), parts, total, parts.map((p) => `${p.name} ${percent(total ? p.value / total : 0)}`).join(", "));
  rows(byId("served-rows"), levels.map((l) => [
    (cell) => { if (!cell.firstChild) cell.append(swatch(l.colour), ` ${l.name}`); },
    count(f[l.field]), total ? percent(f[l.field] / total) : "–", `${count(Math.round(rate(l.field)))}/s`,
  ]));
  text(byId("wait-now"), count(f.waiting));
  text(byId("wait-count"), count(d.waitCount));
  text(byId("wait-longest"), seconds(d.longestWaitSeconds));
  text(byId("wait-deadlocks"), count(d.deadlockCount));
  const box = byId("wait"), width = box.clientWidth, height = box.clientHeight - 4;
  const last = timeline.shown().slice(-Math.max(10, Math.floor(width / 3)));
  const most = Math.max(1, ...last.map((p) => p.figures.waiting)), step = width / Math.max(1, last.length);
  const d_ = last.map((p, i) => (p.figures.waiting > 0 ? `M${(i * step).toFixed(1)},${height + 4}v${(-height * p.figures.waiting) / most}h${Math.max(1, step - 1).toFixed(1)}V${height + 4}Z` : "")).join("");
  byId("wait-none").hidden = d_ !== "";
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + 4}`, height: height + 4, "aria-hidden": "true" });
  picture.append(svg("path", { d: d_ }));
  box.querySelector("svg")?.remove();
  box.append(picture);
  box.setAttribute("aria-label", `Waiting requests over the time line: ${f.waiting} now, ${most === 1 && !d_ ? 0 : most} at most`);
}

function showStreams(d) {
  byId("streams-empty").hidden = d.streams.length > 0;
  byId("streams").hidden = d.streams.length === 0;
  text(byId("streams-facts"), d.streams.length > 0 ? things(d.streams.length, "open stream") : "");
  const most = Math.max(1, ...d.streams.map((s) => s.heldBytes));
  rows(byId("stream-rows"), d.streams.map((s) => [
    String(s.stream),
    (cell) => {
      if (!cell.firstChild) {
        const b = make("div", "bar");
        b.setAttribute("role", "img");
        cell.append(b);
      }
      bar(cell.firstChild, [
        { colour: "live", value: s.liveBytes }, { colour: "pending", value: s.pendingBytes }, { colour: "cached", value: s.cachedBytes },
      ], most, `Live ${bytes(s.liveBytes)}, pending ${bytes(s.pendingBytes)}, cached ${bytes(s.cachedBytes)}`);
    },
    bytes(s.liveBytes), bytes(s.cachedBytes), bytes(s.pendingBytes), bytes(s.heldBytes), count(s.liveCount), count(s.allocCount), percent(s.hitRate),
    String(s.waiting),
  ]), ["", "wide-cell"]);
}

function showTenants(d) {
  byId("tenants").hidden = d.tenants.length === 0;
  const bound = (n) => (n > 0 ? bytes(n) : "none");
  rows(byId("tenant-rows"), d.tenants.map((t) => [t.name, bytes(t.heldBytes), bytes(t.chargedBytes), bound(t.limitBytes), bound(t.shareBytes), String(t.queued)]));
}

function showCalls(calls) {
  byId("calls").hidden = calls.length === 0;
  const items = children(byId("call-rows"), calls.length, () => {
    const li = make("li"), details = make("details"), summary = make("summary");
    summary.append(make("span", "bytes"), make("span", "name mono"), make("span", "muted"));
    details.append(summary, make("ol", "mono"));
    li.append(details);
    return li;
  });
  calls.forEach((call, i) => {
    const [summary, list] = items[i].firstElementChild.children;
    text(summary.children[0], bytes(call.liveBytes));
    text(summary.children[1], call.frames[0]?.function ?? "unknown");
    text(summary.children[2], things(call.bufferCount, "buffer"));
    const lines = children(list, call.frames.length, () => make("li"));
    call.frames.forEach((f, at) => text(lines[at], `${f.function}  ${f.file}:${f.line}`));
  });
}

// ask reads what samples do not have, one request at a time, while the device is in use.
async function ask() {
  const d = sample.devices[device];
  if (asking || d.state === "closed" || document.visibilityState === "hidden") return;
  asking = true;
  try {
    const answer = await fetch(`map.json?device=${device}`);
    if (answer.ok) map.show(await answer.json());
    if (sample.hasCalls && performance.now() - callsAsked > 4000) {
      callsAsked = performance.now();
      const calls = await fetch(`calls.json?device=${device}`);
      if (calls.ok) showCalls((await calls.json()).calls);
    }
  } catch {
    // The feed shows that the server does not answer.
  } finally {
    asking = false;
  }
}

function ofDevice() {
  timeline.points = points.filter((p) => p.devices[device]).map((p) => ({ millis: p.unixMillis, figures: p.devices[device] }));
}

function show() {
  const d = sample?.devices[device];
  if (!d) return;
  ofDevice();
  timeline.intervalMillis = 1000 * sample.intervalSeconds;
  showDevice(d);
  showNow(d);
  timeline.draw();
  showServed(d);
  showStreams(d);
  showTenants(d);
  if (d.state === "closed") map.show(null);
  ask();
}

const pause = feed({
  history(h) { points = h.points; },
  sample(s) {
    sample = s;
    points.push({ unixMillis: Date.parse(s.time), devices: s.devices.map((d) => d.figures) });
    if (points.length > mostPoints) points.splice(0, points.length - mostPoints);
    if (device >= s.devices.length) device = 0;
    status("live");
    show();
  },
  status,
});

byId("pause").addEventListener("click", () => {
  const paused = byId("pause").getAttribute("aria-pressed") !== "true";
  byId("pause").setAttribute("aria-pressed", String(paused));
  pause(paused);
});
byId("device").addEventListener("change", (e) => {
  device = Number(e.target.value);
  byId("map-link").href = `map.json?device=${device}`;
  map.show(null);
  status(byId("status").dataset.state === "paused" ? "paused" : "live");
  show();
});
byId("time-rows").closest("details").addEventListener("toggle", () => timeline.draw());
