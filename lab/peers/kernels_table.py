"""A table of the kernels: ours beside PyTorch's, of what run.sh kernels wrote.

  kernels_table.py ROWS.jsonl...

It prints markdown. Figures are medians over the rounds, of medians. A ratio is PyTorch's figure over ours: above 1 we are faster. Standard
library only.
"""

import json
import os
import sys
from statistics import median

import table

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lab", "kernelbench", "rows.json")
OURS = "vram"
WAYS = ["", "library ", "own "]


class Results:
    """Every figure by side, row and path: a list of values, one a round."""

    def __init__(self):
        self.about, self.figures, self.missing, self.failures, self.rounds = {}, {}, {}, [], 0

    def read(self, path):
        with open(path, encoding="utf-8") as lines:
            for head, body in table.blocks(lines):
                self.add(head, table.objects(body))

    def add(self, head, found):
        if head["kind"] == "about":
            for part in found:
                self.about.update(part)
            return
        if head["code"] != 0:
            self.failures.append((head["peer"], head["subject"], head["round"], head["code"]))
        side = OURS if head["peer"] == OURS else "torch"
        if found:
            self.rounds = max(self.rounds, head["round"])
        for row in found:
            if "row" not in row:
                continue
            key = (side, row["row"], row["path"])
            if row.get("missing"):
                self.missing[key] = row["missing"]
            else:
                self.figures.setdefault(key, []).append(row)

    def figure(self, side, row, path, name="us"):
        """The median of a figure over the rounds, or None."""
        values = [f[name] for f in self.figures.get((side, row, path), []) if f.get(name)]
        return median(values) if values else None

    def ours(self, row, path, name="us"):
        return self.figure(OURS, row, path, name)

    def theirs(self, row, path):
        """PyTorch's figure; of a row that has a peer of its own, that one's."""
        return self.figure("torch", row.get("peer", row["row"]), path)

    def eager(self, row):
        """The faster of an operation that makes its result, and one that writes to a tensor that is there."""
        return least(self.theirs(row, "eager"), self.theirs(row, "out"))

    def verdict(self, row, path):
        """pass where the median reaches the target, and a round has passed: a launch that allocates never does."""
        verdicts = [f["verdict"] for f in self.figures.get((OURS, row, path), []) if f.get("verdict")]
        if not verdicts:
            return ""
        return "pass" if "pass" in verdicts and self.ours(row, path) <= self.ours(row, path, "target_us") else "short"


def least(*values):
    return min((v for v in values if v is not None), default=None)


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def ratio(theirs, ours):
    return f"{theirs / ours:.2f}x" if theirs and ours else ""


def spread(results, row, path):
    """A figure of ours with the 10th and the 90th percentile."""
    micros = results.ours(row, path)
    if micros is None:
        return "missing" if (OURS, row, path) in results.missing else ""
    return f"{number(micros)} ({number(results.ours(row, path, 'p10_us'))}..{number(results.ours(row, path, 'p90_us'))})"


def rate(results, row, path):
    for name, unit in (("tflop_per_s", "TFLOP/s"), ("gb_per_s", "GB/s")):
        value = results.ours(row, path, name)
        if value:
            return f"{number(value)} {unit}"
    return ""


def ways(results, row):
    """The ways for which there is something to say of a row."""
    keys = set(results.figures) | set(results.missing)
    return [w for w in WAYS if any((OURS, row["row"], w + path) in keys for path in ("launched", "graph"))]


def target(results, row, path):
    micros = results.ours(row, path, "target_us")
    return f"{number(micros)} {results.verdict(row, path)}".rstrip() if micros else ""


def operations(results, rows):
    header = ["row", "ours, launched", "target", "ours, graph", "target", "eager", "out=", "graph", "compile",
              "eager / launched", "graph / graph", "compile / launched", "rate"]
    lines = []
    for row in rows:
        if row.get("peer") == "none":
            continue
        for way in ways(results, row):
            name, launched, graph = row["row"], way + "launched", way + "graph"
            mine, mine_graph = results.ours(name, launched), results.ours(name, graph)
            theirs = [results.theirs(row, p) for p in ("eager", "out", "graph", "compile")]
            beside = " (PyTorch: fp32)" if "peer" in row else ""
            lines.append([
                f"{name}{', ' + way.strip() if way else ''}{beside}", spread(results, name, launched), target(results, name, launched),
                spread(results, name, graph), target(results, name, graph), *map(number, theirs),
                ratio(results.eager(row), mine), ratio(theirs[2], mine_graph), ratio(theirs[3], mine), rate(results, name, launched),
            ])
    return header, lines


def hosts(results, rows):
    """Launches and starts, which PyTorch has no row for."""
    lines = []
    for row in rows:
        for path in ("raw", "launched"):
            name = row["row"]
            if row.get("peer") == "none" and results.ours(name, path) is not None:
                allocs = [f["allocs_per_op"] for f in results.figures[(OURS, name, path)]]
                lines.append([name, path, spread(results, name, path), target(results, name, path), f"{median(allocs):.2f}" if row["op"] == "launch" else ""])
    return ["row", "path", "µs", "target", "allocations"], lines


def sources(results, listed):
    """Each line of the table of ratios, held against all rows that it is about: the best of our ways, launched, beside eager."""
    lines = []
    for name, wanted in listed["sources"].items():
        found = []
        for row in listed["rows"]:
            if row.get("source") != name:
                continue
            mine = least(*(results.ours(row["row"], way + "launched") for way in WAYS))
            theirs = results.eager(row)
            if mine and theirs:
                found.append((theirs / mine, row["row"]))
        if found:
            low, high = min(found), max(found)
            reached = sum(r >= wanted for r, _ in found)
            lines.append([name, f"{wanted:.1f}x", f"{low[0]:.2f}x, {low[1]}", f"{high[0]:.2f}x, {high[1]}", f"{reached} of {len(found)}"])
    return ["operation", "wanted over PyTorch eager", "least", "greatest", "rows that reach it"], lines


def missing(results):
    lines = [[f"{side}: {row}, {path}", text.replace("\n", " ").replace("|", "/")] for (side, row, path), text in sorted(results.missing.items())]
    lines += [[f"{peer}: {subject}, round {number_of}", "out of time" if code in (124, 137) else f"code {code}"]
              for peer, subject, number_of, code in results.failures]
    return ["not measured", "why"], lines


def markdown(title, header, lines):
    if not lines:
        return ""
    made = [f"### {title}", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(made + ["| " + " | ".join(line) + " |" for line in lines]) + "\n\n"


def main(argv):
    if not argv or any(a.startswith("-") for a in argv):
        sys.exit(__doc__)
    results = Results()
    for path in argv:
        results.read(path)
    if not results.figures:
        sys.exit("kernels_table.py: no figures in " + ", ".join(argv))
    with open(LIST, encoding="utf-8") as file:
        listed = json.load(file)
    print(", ".join(f"{k} {v}" for k, v in results.about.items() if v is not None) + f". Rounds: {results.rounds}; medians over them.\n")
    if any(f.get("simulated") for found in results.figures.values() for f in found):
        print("Ours were interpreted on the simulated device: their times are no claim.\n")
    print("µs an operation. In brackets: the 10th and the 90th percentile. eager / launched: with the faster of eager and out=.\n")
    print(markdown("Operations", *operations(results, listed["rows"])) + markdown("Ratios that are wanted", *sources(results, listed))
          + markdown("Launches and starts", *hosts(results, listed["rows"])) + markdown("Not measured", *missing(results)), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
