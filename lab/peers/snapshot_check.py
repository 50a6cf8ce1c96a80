"""Reads memory snapshots with PyTorch's own code, and fails where it does not read them.

  snapshot_check.py SNAPSHOT.pickle...

A snapshot is what `vram replay -snapshot FILE` and monitor/snapshot write. Of torch/cuda/_memory_viz.py it calls the summary of
segments, the list of events, the two flame graphs, the comparison of a snapshot with itself and both plots, and compares what they
say with the snapshot. The viewer on pytorch.org reads the format with code of its own, which knows fewer operations: the script sees
to it that no other occurs, takes the history back event by event as the viewer does, and so finds where that would stop. It needs the
package torch, and no GPU.
"""

import base64
import io
import json
import pickle
import pickletools
import re
import sys
from contextlib import redirect_stdout

# What the viewer's reader of pickles implements.
VIEWER_OPERATIONS = {
    "APPEND", "APPENDS", "BINFLOAT", "BINGET", "BININT", "BININT1", "BININT2", "BINPUT", "BINUNICODE", "DICT", "EMPTY_DICT", "EMPTY_LIST",
    "EMPTY_TUPLE", "FRAME", "LIST", "LONG1", "LONG_BINGET", "LONG_BINPUT", "MARK", "MEMOIZE", "NEWFALSE", "NEWTRUE", "NONE", "PROTO",
    "SETITEM", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
}
STATES = {"active_allocated", "active_pending_free", "inactive"}
USED = {"active_allocated", "active_pending_free"}


def lines_as_they_are(lines, *_):
    """In the place of a flame graph, which a script from the network would draw."""
    return lines


def check(condition, what):
    if not condition:
        raise SystemExit(f"snapshot_check: {what}")


def check_operations(data, path):
    for operation, argument, place in pickletools.genops(data):
        check(operation.name in VIEWER_OPERATIONS, f"{path}: byte {place}: the viewer does not know {operation.name}")
        if operation.name == "LONG1":
            check(-(1 << 63) <= argument < 1 << 63, f"{path}: byte {place}: {argument} is no number for the viewer")


def check_blocks(segment):
    address = segment["address"]
    for block in segment["blocks"]:
        check(block["address"] == address, f"a block is at {block['address']}, want {address}")
        check(block["state"] in STATES, f"state {block['state']}")
        address += block["size"]
    check(address == segment["address"] + segment["total_size"], "the blocks do not cover their segment")


def check_history(events, segments):
    """Takes the events back as the viewer's state history does."""
    blocks = {b["address"]: b["state"] for s in segments for b in s["blocks"] if b["state"] in USED}
    mapped = [(s["address"], s["address"] + s["total_size"]) for s in segments]
    for number, event in reversed(list(enumerate(events))):
        action, address, size = event["action"], event.get("addr"), event["size"]
        where = f"event {number}, {action} at {address}"
        holder = next((m for m in mapped if address is not None and m[0] <= address < m[1]), None)
        if action == "alloc":
            check(blocks.pop(address, None) is not None, f"{where}: it is not in use behind it")
        elif action == "free_requested":
            check(address in blocks, f"{where}: it is not in use before it")
        elif action == "free_completed":
            check(address not in blocks, f"{where}: it is in use behind it")
            check(holder is not None, f"{where}: it lies in no segment")
            blocks[address] = "active_pending_free"
        elif action in ("segment_map", "segment_alloc"):
            check(holder is not None and address + size <= holder[1], f"{where}: there is no such segment behind it")
            mapped.remove(holder)
            mapped += [m for m in ((holder[0], address), (address + size, holder[1])) if m[0] < m[1]]
        elif action in ("segment_unmap", "segment_free"):
            check(holder is None, f"{where}: there is a segment behind it")
            mapped.append((address, address + size))
        else:
            check(action in ("oom", "snapshot"), f"{where}: no such action")


def plotted(html):
    """The snapshot that a plot carries inside its page."""
    text = re.search(r"local_files = (.*)", html).group(1)
    return pickle.loads(base64.b64decode(json.loads(text)[0]["base64"]))


def check_torch(viz, snapshot):
    events = [e for trace in snapshot["device_traces"] for e in trace]
    live = [b for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]

    summary = viz.segsum(snapshot)
    check(f"segments: {len(snapshot['segments'])}" in summary, "segsum counts other segments")
    total = sum(b["requested_size"] for b in live)
    check(f"total_allocated: {viz.Bytes(total)}" in summary, "segsum counts other live bytes")

    told = viz.trace(snapshot)
    for trace in snapshot["device_traces"]:
        check(not trace or f"{len(trace)} entries" in told, "trace counts other events")

    for draw in (viz.memory, viz.segments):
        drawn = draw(snapshot, lines_as_they_are)
        bytes_drawn = sum(int(line.rsplit(" ", 1)[1]) for line in drawn.splitlines() if ";active_allocated;" in line)
        check(bytes_drawn == sum(b["size"] for b in live), f"{draw.__name__} draws {bytes_drawn} live bytes")
    with redirect_stdout(io.StringIO()) as out:
        viz.compare(snapshot["segments"], snapshot["segments"], lines_as_they_are)
    check("only_before = []" in out.getvalue(), "compare finds a difference of a snapshot from itself")

    for page in (viz.trace_plot(snapshot), viz.trace_plot(snapshot, plot_segments=True), viz.segment_plot(snapshot)):
        check(plotted(page) == snapshot, "a plot carries another snapshot")
    return len(events), len(live)


def main(paths):
    if not paths:
        raise SystemExit(__doc__)
    from torch.cuda import _memory_viz as viz
    import torch

    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        check_operations(data, path)
        snapshot = pickle.loads(data)
        for segment in snapshot["segments"]:
            check_blocks(segment)
        for device, events in enumerate(snapshot["device_traces"]):
            check_history(events, [s for s in snapshot["segments"] if s["device"] == device])
        events, live = check_torch(viz, snapshot)
        print(f"{path}: torch {torch.__version__} reads {len(snapshot['segments'])} segments, {live} live blocks, {events} events")


if __name__ == "__main__":
    main(sys.argv[1:])
