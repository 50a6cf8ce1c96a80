"""A decoding step of GPT-2 by PyTorch: a static cache of keys and values, bfloat16, one CUDA graph.

  gpt_decode.py [--sequences 32,64] [--keys 512] [--cache 1024] [--steps 200]

It prints a JSON object a line: one that names PyTorch and the device, then one for each number of sequences. The step attends to the whole
cache under a mask, as a static cache does, and draws the most probable token, which the next step takes. BenchmarkDecoding of
examples/gpt/model measures ours.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY = 12, 768, 12, 1024, 50304
SIZE = WIDTH // HEADS


def normal(*shape):
    return (0.02 * torch.randn(shape, device="cuda")).bfloat16()


class Model:
    """Random weights, and the state of some sequences."""

    def __init__(self, sequences, cache, keys):
        self.table, self.positions = normal(VOCABULARY, WIDTH), normal(CONTEXT, WIDTH)
        self.layers = [
            [normal(WIDTH), normal(WIDTH), normal(3 * WIDTH, WIDTH), normal(3 * WIDTH), normal(WIDTH, WIDTH), normal(WIDTH),
             normal(WIDTH), normal(WIDTH), normal(4 * WIDTH, WIDTH), normal(4 * WIDTH), normal(WIDTH, 4 * WIDTH), normal(WIDTH)]
            for _ in range(LAYERS)
        ]
        self.last = [normal(WIDTH), normal(WIDTH)]
        self.k = [normal(sequences, HEADS, cache, SIZE) for _ in range(LAYERS)]
        self.v = [normal(sequences, HEADS, cache, SIZE) for _ in range(LAYERS)]
        self.rows = torch.arange(cache, device="cuda")
        self.tokens = torch.zeros(sequences, dtype=torch.long, device="cuda")
        self.at = torch.full((1,), keys, dtype=torch.long, device="cuda")

    def step(self):
        x = F.embedding(self.tokens, self.table) + self.positions[self.at]
        mask = (self.rows <= self.at).view(1, 1, 1, -1)
        for n, (w1, b1, wa, ba, wp, bp, w2, b2, we, be, wc, bc) in enumerate(self.layers):
            q, k, v = F.linear(F.layer_norm(x, (WIDTH,), w1, b1), wa, ba).view(-1, 3, HEADS, 1, SIZE).unbind(1)
            self.k[n].index_copy_(2, self.at, k)
            self.v[n].index_copy_(2, self.at, v)
            y = F.scaled_dot_product_attention(q, self.k[n], self.v[n], attn_mask=mask)
            x = x + F.linear(y.reshape(-1, WIDTH), wp, bp)
            y = F.gelu(F.linear(F.layer_norm(x, (WIDTH,), w2, b2), we, be), approximate="tanh")
            x = x + F.linear(y, wc, bc)
        logits = F.linear(F.layer_norm(x, (WIDTH,), *self.last), self.table)
        self.tokens.copy_(logits.argmax(-1))


@torch.no_grad()
def measure(sequences, cache, keys, steps):
    m = Model(sequences, cache, keys)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            m.step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        m.step()

    def timed(run):
        best = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(steps):
                run()
            torch.cuda.synchronize()
            best.append((time.perf_counter() - start) / steps)
        return 1e3 * sorted(best)[2]

    def whole():
        graph.replay()
        m.tokens.tolist()

    return {"sequences": sequences, "keys": keys, "cache": cache, "graph_ms": timed(graph.replay), "step_ms": timed(whole), "eager_ms": timed(m.step)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", default="32,64")
    parser.add_argument("--keys", type=int, default=512)
    parser.add_argument("--cache", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    o = parser.parse_args()
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name()}))
    for n in o.sequences.split(","):
        print(json.dumps(measure(int(n), o.cache, o.keys, o.steps)), flush=True)


main()
