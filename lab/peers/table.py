"""Tables of what run.sh wrote: medians over its rounds, and ratios of the peers' figures to ours.

  table.py [-markdown] ROWS.jsonl...

Standard library only. A ratio is a peer's median over ours: above 1 we are faster, or hold less.
"""

import json
import sys
from statistics import median

OURS = "vram"
PEERS = ["torch", "torch-expandable", "cudaMallocAsync", "cudaMalloc", "cupy", "vram-lean", "vram-fast"]
SCENARIOS = ["pair", "lifo", "batch", "varied", "own-streams", "one-stream", "record", "use", "transfer", "paced", "warmup"]
TRACES = {  # what ran, in the order of the tables; others follow
    "gpt2_train": "transformer training",
    "llama_varlen_ckpt": "transformer training, gradient accumulation",
    "moe_train": "mixture of experts, training",
    "gpt2_generate": "inference, changing batches",
    "pipeline_1f1b": "pipeline of four stages, five streams",
    "resnet_train": "convolutions, training",
    "maskrcnn_train": "detection, training",
    "gnn_varied": "graphs of random size, training",
}


# --- reading ---------------------------------------------------------------------------------------------


def blocks(lines):
    """The runs in a file: what names each, and the lines that it printed."""
    head, body = None, []
    for line in lines:
        if line.startswith('{"peer":'):
            if head is not None:
                yield head, body
            head, body = json.loads(line), []
        elif head is not None:
            body.append(line)
    if head is not None:
        yield head, body


def objects(body):
    """The JSON objects that a run printed: an array, or one a line. What a killed program left half written is skipped."""
    try:
        whole = json.loads("\n".join(body))
        return whole if isinstance(whole, list) else [whole]
    except json.JSONDecodeError:
        pass
    found = []
    for line in body:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


class Results:
    """Every figure by what it is about, with a list of its values, one a round."""

    def __init__(self):
        self.about, self.bench, self.replay, self.pressure, self.failures = {}, {}, {}, {}, {}
        self.rounds = {"bench": 0, "replay": 0}

    def read(self, path):
        with open(path, encoding="utf-8") as lines:
            for head, body in blocks(lines):
                self.add(head, objects(body))

    def add(self, head, found):
        kind, peer = head["kind"], head["peer"]
        if kind == "about":
            for part in found:
                self.about.update(part)
            return
        # Our replay exits with 1 where an allocation found no memory: under a limit that is a result.
        if head["code"] != 0 and not (kind == "pressure" and found):
            key = (peer, kind, head["subject"], head["code"])
            self.failures[key] = self.failures.get(key, 0) + 1
        if found and kind in self.rounds:
            self.rounds[kind] = max(self.rounds[kind], head["round"])
        for row in found:
            if kind == "bench":
                self.add_bench(peer, row)
            else:
                table = self.replay if kind == "replay" else self.pressure
                table.setdefault((row["trace"], peer), []).append(row)

    def add_bench(self, peer, row):
        if row["scenario"] == "calibration":
            peer = "calibration"
        elif row["impl"].endswith("-cold"):
            peer += "-cold"
        elif row["impl"] == "vram-alloc":
            peer += "-alloc"
        key = (row["scenario"], row["size_bytes"], row["n"], row["goroutines"])
        self.bench.setdefault(key, {}).setdefault(peer, []).append(row)

    def figure(self, key, peer, name):
        """The median of a scenario's figure, or None."""
        values = [row[name] for row in self.bench.get(key, {}).get(peer, [])]
        return median(values) if values else None

    def of_trace(self, table, trace, peer, pick):
        values = [v for v in map(pick, table.get((trace, peer), [])) if v is not None]
        return median(values) if values else None

    def peers_of(self, kinds):
        """The peers that have figures, in the order of the tables."""
        there = set()
        if "bench" in kinds:
            there |= {p for rows in self.bench.values() for p in rows}
        if "replay" in kinds:
            there |= {p for _, p in self.replay}
        if "pressure" in kinds:
            there |= {p for _, p in self.pressure}
        return [p for p in PEERS if p in there]

    def traces(self):
        there = {t for t, _ in self.replay} | {t for t, _ in self.pressure}
        return [t for t in TRACES if t in there] + sorted(there - set(TRACES))


# --- writing ---------------------------------------------------------------------------------------------


def number(value):
    if value is None:
        return ""
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def size_text(size_bytes):
    if size_bytes == 0:
        return "mixed"
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes % bytes_of == 0:
            return f"{size_bytes // bytes_of} {unit}"
    return f"{size_bytes} B"


def times(ratio):
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def with_ratio(value, ours):
    """A peer's figure and, in brackets, how many times ours it is."""
    if value is None:
        return ""
    if not ours:
        return number(value)
    ratio = value / ours
    return f"{number(value)} ({times(ratio)})"


def text_table(title, header, rows, note):
    widths = [max(len(str(r[i])) for r in [header, *rows]) for i in range(len(header))]
    lines = [title, ""]
    for row in [header, ["-" * w for w in widths], *rows]:
        cells = [str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *([note] if note else []), ""])


def markdown_table(title, header, rows, note):
    lines = [f"### {title}", "", "| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join([*lines, "", *([note, ""] if note else [])])


# --- the tables ------------------------------------------------------------------------------------------


def scenario_keys(results):
    keys = [k for k in results.bench if k[0] in SCENARIOS]
    return sorted(keys, key=lambda k: (SCENARIOS.index(k[0]), k[3], k[2], k[1]))


def peer_key(key):
    """Where a peer's figures are that stand beside ours: it has no exact ends of uses."""
    return ({"use": "record", "transfer": "record"}.get(key[0], key[0]), *key[1:])


def label(key, cold=False):
    scenario, size_bytes, count, threads = key
    words = [scenario + (", cold" if cold else "")]
    if scenario != "varied":
        words.append(size_text(size_bytes))
    if count > 1:
        words.append(f"{count} live" if scenario in ("lifo", "varied") else f"of {count}")
    if scenario in ("own-streams", "one-stream"):
        words.append(f"{threads} thread" + ("s" if threads > 1 else ""))
    return ", ".join(words)


def scenario_table(results):
    peers = results.peers_of(["bench"])
    header = ["ns a pair", OURS, "vram one by one", *peers]
    rows = []
    for key in scenario_keys(results):
        for cold in (True, False) if key[0] == "warmup" else (False,):
            suffix = "-cold" if cold else ""
            ours = results.figure(key, OURS + suffix, "ns_per_op")
            alone = results.figure(key, OURS + "-alloc", "ns_per_op")
            theirs = [results.figure(peer_key(key), p + suffix, "ns_per_op") for p in peers]
            if ours is None and not any(theirs):
                continue
            rows.append([label(key, cold), number(ours), with_ratio(alone, ours), *(with_ratio(v, ours) for v in theirs)])
    note = (
        "A pair is an allocation and its free, wall time over all pairs of all threads; in batch one buffer of a batch, in warmup\n"
        "an allocation, in paced without the work between requests.\n"
        "use, transfer: ours with the end of the use told, or handed over; theirs as record."
    )
    return "Scenarios", header, rows, note


def percentile_table(results):
    peers = results.peers_of(["bench", "replay"])
    header = ["ns, p50 / p99", OURS, *peers]
    rows = []

    def add(name, figure):
        ours = [figure(OURS, q) for q in ("p50_ns", "p99_ns")]
        if None in ours:
            return
        cells = [" / ".join(map(number, ours))]
        for p in peers:
            theirs = [figure(p, q) for q in ("p50_ns", "p99_ns")]
            cells.append("" if None in theirs else " / ".join(with_ratio(v, o) for v, o in zip(theirs, ours)))
        rows.append([name, *cells])

    for key in scenario_keys(results):
        if key[0] == "paced":
            add(label(key), lambda p, q, key=key: results.figure(key, p, q))
    for trace in results.traces():
        add(trace, lambda p, q, t=trace: results.of_trace(results.replay, t, p, lambda r: r.get(q)))
    note = "One request, an allocation or a free, with 5 us of other work before it; what reading the clock costs is taken off."
    return "Single requests with other work between them", header, rows, note


def trace_table(results, title, unit, pick, note):
    peers = results.peers_of(["replay"])
    rows = []
    for trace in results.traces():
        ours = results.of_trace(results.replay, trace, OURS, pick)
        theirs = [results.of_trace(results.replay, trace, p, pick) for p in peers]
        if ours is not None or any(theirs):
            rows.append([f"{trace} ({TRACES[trace]})" if trace in TRACES else trace, number(ours) if unit else ratio_text(ours),
                         *(with_ratio(v, ours) if unit else ratio_text(v) for v in theirs)])
    return title, [unit or "reserved / live", OURS, *peers], rows, note


def ratio_text(value):
    return "" if value is None else f"{value:.3f}"


def cold(row):
    return row["rounds"][0]["ns_per_op"] if row.get("rounds") else None


def warm(row):
    return row.get("warm_ns_per_op")


def pressure_table(results):
    peers = results.peers_of(["pressure"])
    rows = []
    for trace in results.traces():
        cells = []
        for p in [OURS, *peers]:
            runs = results.pressure.get((trace, p))
            cells.append(pressure_text(runs[0]) if runs else "")
        if any(cells):
            rows.append([trace, *cells])
    note = (
        "Allocations that found no memory over the rounds, ns an event in the last whole round, and the most held over the live peak.\n"
        "Cut short: the peer had not got through three rounds when its time was over. A limit of cudaMallocAsync's pool is not kept strictly."
    )
    return "Under a limit a little above the live peak", ["failed; ns; held", OURS, *peers], rows, note


def pressure_text(row):
    failed = sum(r["failed"] for r in row["rounds"])
    whole = [r for r in row["rounds"] if r.get("events", row["events"]) == row["events"]]
    nanos = number(whole[-1]["ns_per_op"]) if whole else "-"
    text = f"{failed}; {nanos}; {row['reserved_over_live']:.3f}"
    return text + ", cut short" if row.get("cut_short") else text


# --- the bars --------------------------------------------------------------------------------------------


def least(results, peer, pairs):
    """The least ratio of a peer's figure to ours, and where it is; None where nothing is there."""
    ratios = [(theirs / ours, where) for ours, theirs, where in pairs(results, peer) if ours and theirs]
    return min(ratios) if ratios else None


def of_scenario(scenario, threads=None):
    def pairs(results, peer):
        for key in scenario_keys(results):
            if key[0] == scenario and threads in (None, key[3]):
                yield results.figure(key, OURS, "ns_per_op"), results.figure(peer_key(key), peer, "ns_per_op"), label(key)

    return pairs


def of_traces(pick):
    def pairs(results, peer):
        for t in results.traces():
            yield results.of_trace(results.replay, t, OURS, pick), results.of_trace(results.replay, t, peer, pick), t

    return pairs


def of_paced(name):
    return of_traces(lambda row: row.get(name))


BARS = [  # what, beside whom, the figures, the bar and the goal
    ("pair, every size", "torch", of_scenario("pair"), 10, 12),
    ("16 threads, each its own stream", "torch", of_scenario("own-streams", 16), 500, 1000),
    ("16 threads on one stream", "torch", of_scenario("one-stream", 16), 50, 100),
    ("every trace, warm", "torch", of_traces(warm), 6, 10),
    ("every trace, cold", "torch-expandable", of_traces(cold), 1, 1),
    ("every trace, cold", "torch", of_traces(cold), 0, 1),
    ("varied", "torch", of_scenario("varied"), 3, 8),
    ("pair, every size", "cudaMallocAsync", of_scenario("pair"), 20, 20),
    ("record, every size", "torch", of_scenario("record"), 8, 8),
    ("single request of a trace, p50", "torch", of_paced("p50_ns"), 0, 10),
    ("single request of a trace, p99", "torch", of_paced("p99_ns"), 0, 10),
]


def bar_table(results):
    rows = []
    for what, peer, pairs, bar, goal in BARS:
        worst = least(results, peer, pairs)
        if worst is None:
            continue
        ratio, where = worst
        verdict = "goal" if ratio >= goal else "bar" if ratio >= bar and bar > 0 else "short"
        rows.append([what, peer, times(ratio), where, f"{bar}x" if bar else "", f"{goal}x", verdict])
    return "Least ratios, and what they should be", ["what", "beside", "least", "where", "bar", "goal", "reached"], rows, ""


def failure_table(results):
    rows = [[peer, kind, subject, "out of time" if code in (124, 137) else f"code {code}", count]
            for (peer, kind, subject, code), count in sorted(results.failures.items())]
    return "Runs that ended early (what they had printed is in the tables)", ["peer", "kind", "what", "how", "times"], rows, ""


def tables(results):
    made = [
        bar_table(results),
        scenario_table(results),
        trace_table(results, "Traces, warm", "ns an event", warm, "The median of the rounds two to twenty-one on the same allocator; CuPy's: two to five."),
        trace_table(results, "Traces, cold", "ns an event", cold, "The first round: memory comes from the driver."),
        percentile_table(results),
        trace_table(results, "Memory held", "", lambda row: row["reserved_over_live"],
                    "The most bytes held from the driver over the most bytes live, over all rounds."),
        pressure_table(results),
        failure_table(results),
    ]
    return [t for t in made if t[2]]


def heading(results):
    about = ", ".join(f"{k} {v}" for k, v in results.about.items() if v is not None)
    unit = results.figure(("calibration", 0, 1, 1), "calibration", "ns_per_op")
    if unit is not None:
        about += f", a compare-and-swap and an atomic OR {number(unit)} ns"
    return f"{about}\nRounds: {results.rounds['bench']} of the scenarios, {results.rounds['replay']} of the traces; medians over them.\n"


def main(argv):
    markdown = "-markdown" in argv
    paths = [a for a in argv if a != "-markdown"]
    if not paths or any(p.startswith("-") for p in paths):
        sys.exit(__doc__)
    results = Results()
    for path in paths:
        results.read(path)
    made = tables(results)
    if not made:
        sys.exit("table.py: no figures in " + ", ".join(paths))
    render = markdown_table if markdown else text_table
    print(heading(results))
    print("\n".join(render(*t) for t in made), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
