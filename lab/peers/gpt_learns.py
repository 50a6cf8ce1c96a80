"""Whether examples/gpt learns as PyTorch does: the loss at the end of a training on one text, by seeds.

  gpt_learns.py --gpt bin/gpt --text FILE [--model char] [--batch 64] [--steps 1000] [--seeds 1,2,3] [--rate 3e-3]

Both sides train in bfloat16 on the first nine tenths of the text's bytes, with the same sizes, schedule, clipping and decay, each with its own
random weights and batches. A figure is the mean loss of the last fifty steps. The exit code is 1 where the means over the seeds are further
apart than the seeds of either side are.
"""

import argparse
import math
import re
import statistics
import subprocess
import sys

from gpt_parity import table

LAST = 50  # steps of a figure
LINE = re.compile(r"^step +(\d+): loss (\S+),", re.M)


def rate_at(step, steps, rate):
    """The learning rate of a step from 1 on: it rises in a twentieth of the steps, and falls on half a cosine to a tenth."""
    warmup = max(1, steps // 20)
    if step <= warmup:
        return rate * step / warmup
    part = min(1, (step - warmup) / max(1, steps - warmup))
    return rate * (0.1 + 0.45 * (1 + math.cos(math.pi * part)))


def ours(a, seed):
    """The mean loss of our training."""
    command = [a.gpt, "-driver", a.driver, "-model", a.model, "-type", "bfloat16", "-batch", str(a.batch), "-steps", str(a.steps), "-every", "1",
               "-rate", str(a.rate), "-seed", str(seed), "-sample", "0", "-data", a.text]
    losses = [float(loss) for _, loss in LINE.findall(subprocess.run(command, check=True, capture_output=True, text=True).stdout)]
    if len(losses) != a.steps:
        sys.exit(f"{len(losses)} losses of {a.steps} steps")
    return statistics.mean(losses[-LAST:])


def theirs(a, seed):
    """The mean loss of PyTorch's training."""
    import torch

    import gpt_torch

    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    with open(a.text, "rb") as f:
        text = torch.frombuffer(bytearray(f.read(8 << 20)), dtype=torch.uint8)
    lessons = text[: len(text) - len(text) // 10].cuda().long()
    layers, width, heads, context, vocabulary = gpt_torch.SIZES[a.model]
    model = gpt_torch.GPT(layers, width, heads, context, vocabulary).cuda()
    optimizer = gpt_torch.optimizer(model, a.rate)
    places, losses = torch.arange(context, device="cuda"), []
    for step in range(1, a.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, a.steps, a.rate)
        at = torch.randint(0, len(lessons) - context, (a.batch, 1), device="cuda") + places
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(lessons[at], lessons[at + 1])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses[-LAST:]).mean().item()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gpt", required=True)
    arguments.add_argument("--driver", default="dynamic")
    arguments.add_argument("--text", required=True)
    arguments.add_argument("--model", default="char")
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--steps", type=int, default=1000)
    arguments.add_argument("--seeds", default="1,2,3")
    arguments.add_argument("--rate", type=float, default=3e-3)
    a = arguments.parse_args()
    seeds = [int(s) for s in a.seeds.split(",")]
    results = {"ours": [ours(a, s) for s in seeds], "PyTorch": [theirs(a, s) for s in seeds]}
    print(table(["", *(f"seed {s}" for s in seeds), "mean"],
                [[who, *(f"{x:.4f}" for x in all), f"{statistics.mean(all):.4f}"] for who, all in results.items()]))
    apart = abs(statistics.mean(results["ours"]) - statistics.mean(results["PyTorch"]))
    spread = max(max(all) - min(all) for all in results.values())
    print(f"\nthe means are {apart:.4f} apart, seeds at most {spread:.4f}")
    sys.exit(0 if apart <= spread else 1)


if __name__ == "__main__":
    main()
