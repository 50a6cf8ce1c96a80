"""Time and memory of a training step of GPT-2's decoder: PyTorch's next to ours, in one table.

  measure -what speed -model 124m -type bfloat16 -batch 8 >> ours.jsonl     # of examples/gpt/measure, as often as there are models
  gpt_speed.py [--paths eager,compile,graph] [--models 124m:8x1024,124m:32x1024,char:64x256] [--steps 20] [ours.jsonl]

Each path of PyTorch runs in a process of its own, so that the memory of one is not another's:

  eager    as PyTorch is used, with the fused AdamW, clipping and bfloat16 autocast
  compile  torch.compile of model and loss
  graph    the whole step of compile, captured as one CUDA graph
"""

import argparse
import json
import subprocess
import sys
import time

from gpt_parity import table


def measure(name, batch, length, path, steps):
    """Measures one path in this process. Returns milliseconds a step and the peak of reserved bytes."""
    import torch

    import gpt_torch

    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    layers, width, heads, context, vocabulary = gpt_torch.SIZES[name]
    model = gpt_torch.GPT(layers, width, heads, context, vocabulary).cuda()
    optimizer = gpt_torch.optimizer(model, 6e-4, capturable=path == "graph")
    call = model if path == "eager" else torch.compile(model)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")
    targets = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = call(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=path != "graph")
        return loss

    run = step
    if path == "graph":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        run = graph.replay
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        run()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / steps, torch.cuda.max_memory_reserved()


def one(arguments, model, path):
    """Runs a path in a process of its own. Returns a row, or one with the reason."""
    command = [sys.executable, __file__, "--one", f"{model},{path}", "--steps", str(arguments.steps)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return {"missing": f"more than {arguments.timeout} s"}
    if done.returncode != 0:
        return {"missing": (done.stderr.strip().splitlines() or ["no output"])[-1][:80]}
    return json.loads(done.stdout.splitlines()[-1])


def sizes(model):
    """Splits 124m:8x1024."""
    name, shape = model.split(":")
    batch, length = shape.split("x")
    return name, int(batch), int(length)


def row(model, who, millis, reserved):
    _, batch, length = sizes(model)
    return [model, who, f"{millis:.2f}", f"{batch * length / millis:.0f} k", f"{reserved / 1e9:.2f} GB"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ours", nargs="?", help="lines of measure -what speed")
    arguments.add_argument("--paths", default="eager,compile,graph")
    arguments.add_argument("--models", default="124m:8x1024,124m:32x1024,char:64x256")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--timeout", type=float, default=120, help="seconds that a path may take")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.one:
        model, path = a.one.split(",")
        millis, reserved = measure(*sizes(model), path, a.steps)
        print(json.dumps({"step_ms": millis, "reserved": reserved}))
        return
    rows = []
    if a.ours:
        with open(a.ours) as f:
            for line in f:
                r = json.loads(line)
                model = f"{r['name']}:{r['batch'] * r['parts']}x{r['length']}"
                rows.append(row(model, f"ours, {r['type']}, {r['library']}", r["step_ms"], r["peak_reserved_bytes"]))
    for model in a.models.split(",") if a.models else []:
        for path in a.paths.split(","):
            result = one(a, model, path)
            print(model, path, result, file=sys.stderr)
            if "missing" in result:
                rows.append([model, "PyTorch " + path, result["missing"], "", ""])
            else:
                rows.append(row(model, "PyTorch " + path, result["step_ms"], result["reserved"]))
    rows.sort(key=lambda r: r[0])
    print(table(["model", "", "ms a step", "tokens/s", "reserved"], rows))


if __name__ == "__main__":
    main()
