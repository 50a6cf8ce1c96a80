"""The operations of lab/kernelbench/rows.json by PyTorch: eager, in a CUDA graph, and by torch.compile.

  torch_kernels.py [--paths eager,out,graph,compile] [--rows BEGIN,...] [--samples 35] [--sample-ms 4] [--small]

It prints a JSON object a line: one that names PyTorch and the device, then one for each row and path. package lab/kernelbench says what a
figure is, and measures ours in the same way: samples of 2 to 400 operations, one behind the other, by the host's clock and by events.

  eager    as PyTorch is used: an operation makes its result
  out      it writes to a tensor that is there, where PyTorch has a form for that
  graph    a node of a CUDA graph
  compile  torch.compile, for the rows that ask for it
"""

import argparse
import gc
import json
import os
import sys
import time

import torch

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lab", "kernelbench", "rows.json")
MIN_OPERATIONS, MAX_OPERATIONS = 2, 400
GRAPH_US, MAX_GRAPH_NODES = 2000, 20
EPSILON = 1e-5


# --- operations ------------------------------------------------------------------------------------------


def normal(*shape):
    return torch.randn(shape, device="cuda")


def fused(a, b):
    return torch.relu(a * b + a) * 2 - b


class Operation:
    """What an operation is to PyTorch: its operands, and two functions of them."""

    def __init__(self, operands, plain, out=None, result=None):
        self.operands = operands  # shape -> tensors
        self.plain = plain  # tensors -> result
        self.out = out  # result, tensors -> result, into a tensor that is there; None: PyTorch has no such form
        self.result = result or (lambda shape: normal(*shape))  # shape -> such a tensor


def layer_norm(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, EPSILON)


def heads(shape):
    """Queries, keys, values and the gradient of the output."""
    batch, count, queries, keys, dim = shape
    return tuple(normal(batch, count, rows, dim).bfloat16() for rows in (queries, keys, keys, queries))


def attention(q, k, v, _):
    """Causal. PyTorch's mask begins at the first key: one query, which sees all keys, has none."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] == k.shape[2])


PAGE_ROWS = 16  # as lab/kernelbench has them


def pages(shape):
    """Queries, the pages of keys and of values, and the pages of each sequence."""
    batch, count, queries, keys, dim = shape
    each = keys // PAGE_ROWS
    table = torch.arange(batch * each - 1, -1, -1, device="cuda").reshape(batch, each)
    cache = (normal(batch * each, count, PAGE_ROWS, dim).bfloat16() for _ in range(2))
    return (normal(batch, count, queries, dim).bfloat16(), *cache, table)


def paged_attention(q, k, v, table):
    """PyTorch reads no pages: they are gathered first."""
    k, v = (x[table].transpose(1, 2).flatten(2, 3) for x in (k, v))
    return attention(q, k, v, None)


def attention_gradients(q, k, v, grad):
    operands = [x.detach().requires_grad_() for x in (q, k, v)]
    return torch.autograd.grad(attention(*operands, None), operands, grad)


def half(*shape):
    return normal(*shape).bfloat16()


def targets(rows, below):
    return torch.randint(0, below, (rows,), device="cuda")


def cross_entropy(logits, wanted):
    """Forward and backward, as under autocast: the loss is of float32 logits."""
    return torch.autograd.grad(torch.nn.functional.cross_entropy(logits.float(), wanted), logits)[0]


def residual_norm(x, residual, weight, bias):
    return layer_norm(x + residual, weight, bias)


def residual_norm_backward(grad, dsum, x, mean, factor, weight, bias):
    return torch.ops.aten.native_layer_norm_backward(grad, x, [x.shape[-1]], mean, factor, weight, bias, [True, True, True])[0] + dsum


def norm_backward(grad, x, mean, factor, weight, bias):
    return torch.ops.aten.native_layer_norm_backward(grad, x, [x.shape[-1]], mean, factor, weight, bias, [True, True, True])[0]


# Of a linear layer: rows, outputs, inputs. Gradients of weights are new, of bfloat16.
LINEAR = {
    "linear": (lambda r, o, i: (half(r, i), half(o, i)), lambda x, w, out=None: torch.matmul(x, w.t(), out=out), lambda r, o, i: half(r, o)),
    "linearinputs": (lambda r, o, i: (half(r, o), half(o, i)), lambda g, w, out=None: torch.matmul(g, w, out=out), lambda r, o, i: half(r, i)),
    "linearweights": (lambda r, o, i: (half(r, o), half(r, i)), lambda g, x, out=None: torch.matmul(g.t(), x, out=out), lambda r, o, i: half(o, i)),
}
LAYERS = ((3, 1), (1, 1), (4, 1), (1, 4))  # outputs and inputs of a block, as multiples of its width


def linear(name):
    operands, product, result = LINEAR[name]
    return Operation(lambda s: operands(*s), product, lambda o, a, b: product(a, b, out=o), lambda s: result(*s))


def linear_block(shape):
    """The operands of all products of a block, one after the other, and their results."""
    rows, width = shape
    all = []
    for operands, product, result in LINEAR.values():
        for o, i in LAYERS:
            each = (rows, o * width, i * width)
            all.append((product, operands(*each), result(*each)))
    return all


def linear_block_products(*all):
    for product, operands, result in all:
        product(*operands, out=result)
    return result


def linear_gelu(x, weight, bias):
    return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias), approximate="tanh")


def optimizer(shape):
    """PyTorch's own fused optimizer: it has no 16-bit copies, and its gradients are float32 as its parameters."""
    parameters = [normal(shape[1]) for _ in range(shape[0])]
    for p in parameters:
        p.grad = normal(shape[1])
    return (torch.optim.AdamW(parameters, lr=1e-3, fused=True, capturable=True),)


OPERATIONS = {
    "crossentropy": Operation(lambda s: (half(*s).requires_grad_(), targets(*s)), cross_entropy),
    "residualnorm": Operation(lambda s: (half(*s), half(*s), half(s[1]), half(s[1])), residual_norm),
    "residualnormbackward": Operation(
        lambda s: (half(*s), half(*s), half(*s), normal(s[0], 1), normal(s[0], 1), half(s[1]), half(s[1])), residual_norm_backward),
    "norm": Operation(lambda s: (half(*s), half(s[1]), half(s[1])), layer_norm),
    "normbackward": Operation(lambda s: (half(*s), half(*s), normal(s[0], 1), normal(s[0], 1), half(s[1]), half(s[1])), norm_backward),
    "linear": linear("linear"),
    "linearinputs": linear("linearinputs"),
    "linearweights": linear("linearweights"),
    "linearblock": Operation(linear_block, linear_block_products),
    "lineargelu": Operation(lambda s: (half(s[0], s[2]), half(s[1], s[2]), half(s[1])), linear_gelu),
    "embeddingbackward": Operation(
        lambda s: (half(s[0], s[2]), targets(s[0], s[1]), s[1]), lambda g, i, rows: torch.ops.aten.embedding_dense_backward(g, i, rows, -1, False)),
    "gradnorm": Operation(lambda s: tuple(half(s[1]) for _ in range(s[0])), lambda *all: torch.nn.utils.get_total_norm(all)),
    "adamw": Operation(optimizer, lambda o: o.step()),
    "add": Operation(lambda s: (normal(*s), normal(*s)), lambda a, b: a + b, lambda o, a, b: torch.add(a, b, out=o)),
    "fused": Operation(lambda s: (normal(*s), normal(*s)), fused),
    "gelu": Operation(lambda s: (normal(*s),), lambda a: torch.nn.functional.gelu(a)),
    "bias": Operation(lambda s: (normal(*s), normal(s[1])), lambda a, b: a + b, lambda o, a, b: torch.add(a, b, out=o)),
    "sum": Operation(lambda s: (normal(*s),), lambda a: a.sum(), lambda o, a: torch.sum(a, 0, out=o), lambda s: normal()),
    "softmax": Operation(lambda s: (normal(*s),), lambda a: torch.softmax(a, -1), lambda o, a: torch.softmax(a, -1, out=o)),
    "layernorm": Operation(lambda s: (normal(*s), normal(s[1]), normal(s[1])), layer_norm),
    "rowsums": Operation(lambda s: (normal(*s),), lambda a: a.sum(-1), lambda o, a: torch.sum(a, -1, out=o), lambda s: normal(s[0])),
    "columnsums": Operation(lambda s: (normal(*s),), lambda a: a.sum(0), lambda o, a: torch.sum(a, 0, out=o), lambda s: normal(s[1])),
    "variance": Operation(lambda s: (normal(*s),), lambda a: torch.var(a, -1, correction=0)),
    "argmax": Operation(lambda s: (normal(*s),), lambda a: a.argmax(-1)),
    "transpose": Operation(lambda s: (normal(*s),), lambda a: a.t().contiguous(), lambda o, a: o.copy_(a.t()), lambda s: normal(s[1], s[0])),
    "matmul": Operation(lambda s: (normal(s[0], s[2]), normal(s[2], s[1])), lambda a, b: a @ b, lambda o, a, b: torch.matmul(a, b, out=o),
                        lambda s: normal(s[0], s[1])),
    "attention": Operation(heads, attention),
    "attention+pages": Operation(pages, paged_attention),
    "attention+gradients": Operation(heads, attention_gradients),
}


def measurable(row):
    """Whether PyTorch has the row: launches, starts and precisions of our own it has not."""
    return "peer" not in row


class Work:
    """A row's operation on its sets of operands, which it takes in turn."""

    def __init__(self, row, small):
        self.row = row
        shape = row["small"] if small else row["shape"]
        self.operation = OPERATIONS[row["op"]]
        sets = row.get("sets", 1)
        self.sets = [self.operation.operands(shape) for _ in range(sets)]
        self.results = [self.operation.result(shape) for _ in range(sets)] if self.operation.out else []
        precision = row.get("precision")
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        if precision == "bf16":
            self.sets = [tuple(t.bfloat16() for t in operands) for operands in self.sets]
            self.results = [t.bfloat16() for t in self.results]

    def plain(self, i):
        return self.operation.plain(*self.sets[i % len(self.sets)])

    def into(self, i):
        at = i % len(self.sets)
        return self.operation.out(self.results[at], *self.sets[at])

    def captured(self, i):
        """What a graph has: with several sets the results are different memory, too, where PyTorch has a form for that."""
        return self.into(i) if len(self.sets) > 1 and self.operation.out else self.plain(i)


# --- measuring -------------------------------------------------------------------------------------------


class Sample:
    """The time of one operation of many, in microseconds."""

    def __init__(self, submit, each, count):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        start.record()
        for i in range(count):
            submit(i)
        end.record()
        end.synchronize()
        self.wall_us = (time.perf_counter_ns() - began) / 1e3 / (each * count)
        self.event_us = start.elapsed_time(end) * 1e3 / (each * count)


def samples(options, submit, each=1):
    """The first ones warm up, and say how many submissions a sample has."""
    count = MIN_OPERATIONS
    for _ in range(4):
        trial = Sample(submit, each, count).wall_us * each
        count = min(MAX_OPERATIONS, max(MIN_OPERATIONS, int(options.sample_ms * 1e3 / max(trial, 0.1))))
    return [Sample(submit, each, count) for _ in range(options.samples)]


def quantile(ordered, q):
    at = q * (len(ordered) - 1)
    low = int(at)
    if low + 1 >= len(ordered):
        return ordered[-1]
    return ordered[low] + (at - low) * (ordered[low + 1] - ordered[low])


def figure(row, path, found):
    wall, event = sorted(s.wall_us for s in found), sorted(s.event_us for s in found)
    counts = event if row["clock"] == "event" else wall
    return {
        "row": row["row"], "path": path, "clock": row["clock"], "us": quantile(counts, 0.5), "p10_us": quantile(counts, 0.1),
        "p90_us": quantile(counts, 0.9), "wall_us": quantile(wall, 0.5), "event_us": quantile(event, 0.5),
    }


def eager(options, work):
    return samples(options, work.plain)


def out(options, work):
    return samples(options, work.into) if work.operation.out else None


def graph(options, work):
    took = samples(argparse.Namespace(samples=3, sample_ms=options.sample_ms), work.captured)
    event = quantile(sorted(s.event_us for s in took), 0.5)
    nodes = max(len(work.sets), min(MAX_GRAPH_NODES, max(MIN_OPERATIONS, int(GRAPH_US / max(event, 1e-3)))))
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for i in range(3):
            work.captured(i)
    torch.cuda.current_stream().wait_stream(aside)
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        for i in range(nodes):
            work.captured(i)
    return samples(options, lambda _: made.replay(), nodes)


def compiled(options, work):
    if not work.row.get("compile"):
        return None
    function = torch.compile(work.operation.plain, dynamic=False)
    return samples(options, lambda i: function(*work.sets[i % len(work.sets)]))


PATHS = {"eager": eager, "out": out, "graph": graph, "compile": compiled}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", default="eager,out,graph")
    parser.add_argument("--rows", default="")
    parser.add_argument("--samples", type=int, default=35)
    parser.add_argument("--sample-ms", type=float, default=4)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    paths = options.paths.split(",")
    if wrong := [p for p in paths if p not in PATHS]:
        parser.error(f"no path {wrong[0]}: want some of {', '.join(PATHS)}")
    with open(LIST, encoding="utf-8") as file:
        rows = [r for r in json.load(file)["rows"] if measurable(r) and r["row"].startswith(tuple(options.rows.split(",")))]
    torch.manual_seed(0)
    gc.disable()  # a collection would fall into some sample
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}), flush=True)
    for row in rows:
        if paths == ["compile"] and not row.get("compile"):
            continue
        work = Work(row, options.small)
        for path in paths:
            try:
                found = PATHS[path](options, work)
            except Exception as error:  # noqa: BLE001  (this version cannot do it, whatever it says: the other figures count)
                print(json.dumps({"row": row["row"], "path": path, "missing": str(error)[:200]}), flush=True)
                continue
            if found:
                print(json.dumps(figure(row, path, found)), flush=True)
        del work
        gc.collect()


if __name__ == "__main__":
    sys.exit(main())
