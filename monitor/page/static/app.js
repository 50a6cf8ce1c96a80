// The page: it puts each sample into its places, and reads the memory map and the call stacks after it.

import { bar, byId, bytes, children, clock, count, length, make, percent, rows, seconds, svg, swatch, text, things } from "./format.js";
import { feed } from "./feed.js";
import { MemoryMap } from "./map.js";
import { ofSample } from "./states.js";
import { Timeline } from "./timeline.js";

const mostPoints = 5000; // kept here; the server keeps fewer
const levels = [
  { name: "Magazine", field: "magazineHits" },
  { name: "Stream", field: "streamHits" },
  { name: "Pool", field: "poolHits" },
  { name: "Driver", field: "driverMisses" },
];
// What a request can end with instead of memory. The last of them were refused before memory was searched.
const noMemory = ["outOfMemoryCount", "deadlockCount", "endedWaitCount"];
const refusals = [...noMemory, "refusedCount"];
const recentMillis = 60000; // of refusals that are told beside the pressure
const callsMillis = 4000; // between two readings of the call stacks
const streamsShown = 12; // of many, until the others are asked for
const statusTexts = { connecting: "Connecting", live: "Live", retrying: "Connecting again", paused: "Paused", closed: "Closed" };

const timeline = new Timeline(), map = new MemoryMap();
let points = []; // {unixMillis, devices}, as the server has them
let sample = null, device = 0, asking = false, callsAsked = -Infinity, allStreams = false;

// status shows how the page stands. It is read out where it changes.
function status(state) {
  const closed = state === "live" && sample?.devices[device]?.state === "closed";
  byId("status").dataset.state = closed ? "closed" : state;
  text(byId("status"), statusTexts[closed ? "closed" : state]);
  if (!sample) for (const id of ["device-facts", "time-begins", "map-empty", "streams-empty", "calls-empty"]) text(byId(id), statusTexts[state]);
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

// recently is how much figures have risen in the last minute, as far as there are points of it.
function recently(...fields) {
  const last = points.at(-1), first = points.find((p) => p.unixMillis >= last.unixMillis - recentMillis && p.devices[device]);
  return fields.reduce((n, f) => n + Math.max(0, last.devices[device][f] - first.devices[device][f]), 0);
}

// known is a text of a figure, or a dash where there is nothing yet that it could be of.
const known = (there, value) => (there ? value : "–");

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
  const parts = ofSample.map((s) => ({ name: s.name, fill: s.fill, value: f[s.field] }));
  if (f.sharedBytes > 0) parts.push({ name: "Shared with other processes", fill: "shared", value: f.sharedBytes });
  const unknown = f.reservedBytes + f.sleepingBytes - parts.reduce((n, p) => n + p.value, 0);
  if (unknown > 0) parts.push({ name: "In a driver job", fill: "busy", value: unknown });
  bar(byId("now-bar"), parts, whole, `Of a limit of ${bytes(f.limitBytes)}: ${parts.filter((p) => p.value > 0).map((p) => `${p.name} ${bytes(p.value)}`).join(", ") || "nothing is reserved"}`);
  const cells = children(byId("now-states"), ofSample.length, (i) => {
    const e = make("div"), dt = make("dt");
    dt.append(swatch(ofSample[i].fill), ofSample[i].name);
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
  text(byId("efficiency"), known(d.peakReservedBytes > 0, `${percent(d.efficiency)} of peak reserved`));
  const free = f.freeBytes + f.cachedBytes > 0;
  text(byId("largest"), known(free, bytes(d.largestFreeBytes)));
  text(byId("fragmentation"), known(free, `fragmentation ${percent(d.fragmentation)}`));
  text(byId("hit-rate"), known(f.allocCount > 0, percent(d.hitRate)));
  text(byId("alloc-rate"), `${count(Math.round(rate("allocCount")))} allocations/s`);
  text(byId("waiting"), count(f.waiting));
  text(byId("demand"), f.waiting > 0 ? `for ${bytes(f.waitDemandBytes)}` : `${count(d.waitCount)} waited so far`);
  const refused = noMemory.reduce((n, field) => n + f[field], 0), now = recently(...noMemory);
  text(byId("refused"), count(refused));
  byId("refused").dataset.level = now > 0 ? "critical" : "";
  text(byId("refused-recently"), now > 0 ? `${count(now)} in the last minute` : refused > 0 ? "none in the last minute" : "none so far");
  text(byId("pressure"), d.pressure);
  byId("pressure").dataset.level = now > 0 ? "critical" : d.pressure;
  byId("rises").dataset.level = now > 0 ? "critical" : "";
  text(byId("rises"), now > 0 ? d.pressure === "normal" ? "but requests are refused" : "requests are refused" : d.pressureRises === 0 ? "never rose" : d.pressureRises === 1 ? "rose once" : `rose ${count(d.pressureRises)} times`);
}

function showServed(d) {
  const f = d.figures, total = f.allocCount;
  rows(byId("served-rows"), levels.map((l) => [
    l.name,
    (cell) => {
      if (!cell.firstChild) cell.append(make("div", "bar"));
      length(cell.firstChild, total ? f[l.field] / total : 0);
    },
    known(total > 0, percent(f[l.field] / total)), count(f[l.field]), `${count(Math.round(rate(l.field)))}/s`,
  ]), ["", "level-bar"]);
  text(byId("driver-calls"), `${count(d.driverCalls)} driver calls of the allocator took ${seconds(d.driverSeconds)}${d.driver === "sim" ? ", modelled" : ""}`);
  text(byId("wait-now"), count(f.waiting));
  text(byId("wait-count"), count(d.waitCount));
  text(byId("wait-longest"), known(d.waitCount > 0, seconds(d.longestWaitSeconds)));
  const box = byId("wait"), width = box.clientWidth, height = box.clientHeight - 4;
  const last = timeline.shown().slice(-Math.max(10, Math.floor(width / 3)));
  const most = Math.max(1, ...last.map((p) => p.figures.waiting)), step = Math.min(12, width / Math.max(1, last.length));
  const begin = width - last.length * step;
  const d_ = last.map((p, i) => (p.figures.waiting > 0 ? `M${(begin + i * step).toFixed(1)},${height + 4}v${(-height * p.figures.waiting) / most}h${Math.max(1, step - 1).toFixed(1)}V${height + 4}Z` : "")).join("");
  text(byId("wait-most"), d_ === "" ? "" : `${things(most, "request")} at most, from ${clock(last[0].millis)} to now`);
  byId("wait-most").hidden = d_ === "";
  byId("wait-none").hidden = d_ !== "";
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + 4}`, height: height + 4, "aria-hidden": "true" });
  picture.append(svg("path", { d: d_ }));
  box.querySelector("svg")?.remove();
  box.append(picture);
  box.setAttribute("aria-label", `Waiting requests over the time line: ${f.waiting} now, ${most === 1 && !d_ ? 0 : most} at most`);
}

function showRefused(d) {
  const f = d.figures;
  for (const field of refusals) text(byId(`refused-${field}`), count(f[field]));
  text(byId("refused-retries"), count(d.retryCount));
  text(byId("refused-frees"), count(d.badFreeCount));
  text(byId("refused-panics"), count(d.panics));
}

// party names a stream or a tenant.
const party = (p) => (p.tenant ? `tenant ${p.tenant}` : `stream ${p.stream}`);

function showWaiters(d) {
  const { requests, requestCount, holders, holderCount, stalled } = d.waiters;
  byId("waiters").hidden = requestCount === 0;
  text(byId("waiters-facts"), requestCount > requests.length ? `the first ${requests.length} of ${count(requestCount)}` : "in the order in which they are served");
  const who = holders.slice(0, 4).map((h) => `${party(h)} with ${bytes(h.heldBytes)}${h.suspended ? ", suspended" : h.waitingBytes > 0 ? ", waiting itself" : ""}`);
  if (holderCount > who.length) who.push(things(holderCount - who.length, "other"));
  text(byId("waiters-holders"), who.length > 0 ? `Memory is held by ${who.join("; ")}.` : "");
  byId("waiters-stalled").hidden = !stalled;
  rows(byId("waiter-rows"), requests.map((r) => [
    r.position > 0 ? String(r.position) : "–", bytes(r.bytes) + (r.bufferCount > 1 ? ` in ${things(r.bufferCount, "buffer")}` : ""), r.tag || "–", r.tenant || "–",
    String(r.stream), r.waitedSeconds > 0 ? seconds(r.waitedSeconds) : "–", r.hasDeadline ? seconds(Math.max(0, r.leftSeconds)) : "none", cause(r),
  ]), ["", "", "name", "name", "", "", "", "words"]);
}

// cause says what a request waits for, and behind how many others.
function cause(r) {
  const what = r.for === "its tenant's quota" ? `the quota of tenant ${r.tenant}` : r.for;
  return r.position > 1 ? `${what}, behind ${things(r.position - 1, "request")}` : what;
}

function showStreams(d) {
  text(byId("streams-empty"), "No stream is open.");
  byId("streams-empty").hidden = d.streams.length > 0;
  byId("streams").hidden = d.streams.length === 0;
  text(byId("streams-facts"), d.streams.length > 0 ? things(d.streams.length, "open stream") : "");
  const most = Math.max(1, ...d.streams.map((s) => s.heldBytes));
  const many = d.streams.length > streamsShown;
  byId("streams-all").hidden = !many;
  text(byId("streams-all"), allStreams ? `Show the ${streamsShown} that hold the most` : `Show all ${count(d.streams.length)} streams`);
  byId("streams-all").setAttribute("aria-expanded", String(allStreams));
  let shown = d.streams;
  if (many && !allStreams) {
    shown = [...d.streams].sort((a, b) => b.heldBytes - a.heldBytes || a.stream - b.stream).slice(0, streamsShown).sort((a, b) => a.stream - b.stream);
    const rest = d.streams.filter((s) => !shown.includes(s));
    text(byId("streams-rest"), `${things(rest.length, "other stream")} hold ${bytes(rest.reduce((n, s) => n + s.heldBytes, 0))}, ${bytes(rest.reduce((n, s) => n + s.liveBytes, 0))} of it live.`);
  }
  byId("streams-rest").hidden = !many || allStreams;
  rows(byId("stream-rows"), shown.map((s) => [
    String(s.stream),
    (cell) => {
      if (!cell.firstChild) {
        const b = make("div", "bar");
        b.setAttribute("role", "img");
        cell.append(b);
      }
      bar(cell.firstChild, [
        { fill: "live", value: s.liveBytes }, { fill: "pending", value: s.pendingBytes }, { fill: "cached", value: s.cachedBytes },
      ], most, `Live ${bytes(s.liveBytes)}, pending ${bytes(s.pendingBytes)}, cached ${bytes(s.cachedBytes)}`);
    },
    bytes(s.liveBytes), bytes(s.cachedBytes), bytes(s.pendingBytes), bytes(s.heldBytes), count(s.liveCount), count(s.allocCount),
    known(s.allocCount > 0, percent(s.hitRate)), String(s.waiting),
  ]), ["", "wide-cell"]);
}

function showTenants(d) {
  byId("tenants").hidden = d.tenants.length === 0;
  const bound = (n) => (n > 0 ? bytes(n) : "none");
  rows(byId("tenant-rows"), d.tenants.map((t) => [
    t.name, bytes(t.heldBytes), bytes(t.chargedBytes), bound(t.limitBytes), bound(t.shareBytes), count(t.waitingForQuota), count(t.waitingForMemory),
  ]));
}

function showProcesses(d) {
  const { processes, processCount } = d;
  byId("processes").hidden = !d.processesKnown;
  text(byId("processes-facts"), processCount > processes.length ? `the first ${processes.length} of ${count(processCount)}` : (processCount === 1 ? "1 process" : `${count(processCount)} processes`));
  rows(byId("process-rows"), processes.map((p) => [
    String(p.pid), p.bytesKnown ? bytes(p.bytes) : "–", (p.command || "–") + (p.own ? " (this process)" : ""), p.place || "–",
  ]), ["", "", "name", "name"]);
}

function showCalls({ sampleBytes, calls, stackCount, liveBytes }) {
  byId("calls-empty").hidden = calls.length > 0;
  text(byId("calls-empty"), sampleBytes > 0 ? "No live buffer has been sampled yet." : "The device does not sample its allocations. Config.SampleBytes, Settings.SampleBytes while it runs, or the variable VRAM_SAMPLE_SIZE switches that on; vram.DefaultSampleBytes suits most programs.");
  const facts = [stackCount > calls.length ? `the first ${calls.length} of ${things(stackCount, "call stack")}` : "", sampleBytes > 0 ? `estimated from one sample in each ${bytes(sampleBytes)}` : "sampling is off: only earlier allocations are known"];
  text(byId("calls-facts"), calls.length > 0 ? facts.filter(Boolean).join(", ") : "");
  const items = children(byId("call-rows"), calls.length, () => {
    const li = make("li"), details = make("details"), summary = make("summary");
    summary.append(make("span", "bytes"), make("span", "bar"), make("span", "name mono"), make("span", "muted"));
    details.append(summary, make("ol", "mono"));
    li.append(details);
    return li;
  });
  calls.forEach((call, i) => {
    const [summary, list] = items[i].firstElementChild.children;
    text(summary.children[0], bytes(call.liveBytes));
    length(summary.children[1], liveBytes > 0 ? call.liveBytes / liveBytes : 0);
    const [first] = call.frames;
    text(summary.children[2], first ? `${first.function.split("/").at(-1)} (${first.file.split("/").at(-1)}:${first.line})` : "places beyond those that are kept apart");
    text(summary.children[3], things(call.bufferCount, "buffer"));
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
    if (performance.now() - callsAsked > callsMillis) {
      callsAsked = performance.now();
      const calls = await fetch(`calls.json?device=${device}`);
      if (calls.ok) showCalls(await calls.json());
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
  showRefused(d);
  showWaiters(d);
  showStreams(d);
  showTenants(d);
  showProcesses(d);
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
  callsAsked = -Infinity;
  byId("map-link").href = `map.json?device=${device}`;
  byId("calls-link").href = `calls.json?device=${device}`;
  map.show(null);
  status(byId("status").dataset.state === "paused" ? "paused" : "live");
  show();
});
byId("time-rows").closest("details").addEventListener("toggle", () => timeline.draw());
byId("streams-all").addEventListener("click", () => {
  allStreams = !allStreams;
  if (sample?.devices[device]) showStreams(sample.devices[device]);
});
