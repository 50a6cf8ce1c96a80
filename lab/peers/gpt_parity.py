"""Compares the training of examples/gpt with PyTorch's: the same weights, batches and hyperparameters.

  measure -what parity -model 124m -batch 4 -length 128 -steps 10 -file f32.safetensors                 # of examples/gpt/measure
  measure -what parity -model 124m -batch 4 -length 128 -steps 10 -type bfloat16 -file bf16.safetensors
  gpt_parity.py f32.safetensors bf16.safetensors

It prints tables: the errors of logits and gradients, and the losses of all steps. Errors of logits are absolute; errors of gradients are the
norm of the difference over the norm of PyTorch's. A file of bfloat16 is compared with autocast, and both with float32: PyTorch's own
error is next to ours. The exit code is 1 where a bound does not hold.
"""

import argparse
import json
import struct
import sys

BOUNDS = {  # of logits, gradients, losses
    "float32": (1e-3, 1e-4, 1e-5),
    "bfloat16": (None, 0.05, 0.05),
}


def read(path):
    """The texts and tensors of a safetensors file: name -> (type, shape, bytes)."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    texts = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[first:end])
    return texts, tensors


def table(head, rows):
    """Lines of a table in Markdown."""
    widths = [max(len(str(row[i])) for row in [head] + rows) for i in range(len(head))]
    lines = ["| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |" for row in [head] + rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def grouped(name):
    """The name of a tensor without its layer's number."""
    parts = name.split(".")
    return ".".join(["h.*"] + parts[2:]) if parts[0] == "h" else name


class Training:
    """A training by PyTorch from the weights of a file."""

    def __init__(self, texts, tensors, kind, device):
        import torch

        import gpt_torch

        self.torch, self.kind, self.device = torch, kind, device
        config, self.settings = json.loads(texts["config"]), json.loads(texts["training"])
        self.model = gpt_torch.GPT(config["layers"], config["width"], config["heads"], config["context"], config["vocabulary"]).to(device)
        self.transposed = gpt_torch.transposed
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(self.oriented(name, tensor(torch, tensors["weights." + name]).to(device)))
        s = self.settings
        self.optimizer = gpt_torch.optimizer(self.model, 0.0, s["beta1"], s["beta2"], s["epsilon"], s["decay"])

    def oriented(self, name, x):
        return x.t() if self.transposed(name) else x

    def cast(self):
        return self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.kind == "bfloat16")

    def logits(self, tokens):
        with self.torch.no_grad(), self.cast():
            return self.model.logits(tokens).float().reshape(-1, self.model.wte.weight.shape[0])

    def step(self, tokens, targets, rate):
        """Makes a step. Returns its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast():
            loss = self.model(tokens, targets)
        loss.backward()
        self.gradients = {name: self.oriented(name, p.grad).clone() for name, p in self.model.named_parameters()} if not hasattr(self, "gradients") else self.gradients
        if self.settings["clip"] > 0:
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings["clip"])
        self.optimizer.step()
        return loss.item()


def tensor(torch, entry):
    kind, shape, data = entry
    return torch.frombuffer(bytearray(data), dtype={"F32": torch.float32, "I64": torch.int64}[kind]).reshape(shape)


def far(a, b):
    """The norm of the difference over the norm of b."""
    return ((a - b).norm() / b.norm().clamp_min(1e-30)).item()


def compare(path, device):
    """Prints the tables of a file. Returns whether the bounds hold."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    texts, tensors = read(path)
    kind = texts["type"]
    of = lambda name: tensor(torch, tensors[name]).to(device)
    tokens, targets, rates, losses = of("tokens"), of("targets"), of("rates").tolist(), of("losses").tolist()
    exact, same = Training(texts, tensors, "float32", device), Training(texts, tensors, kind, device)
    logits = of("logits")
    want = exact.logits(tokens[0])
    theirs = same.logits(tokens[0])
    most, own = (logits - want).abs().max().item(), (theirs - want).abs().max().item()
    rows = []
    for step, rate in enumerate(rates):
        a = exact.step(tokens[step], targets[step], rate)
        b = same.step(tokens[step], targets[step], rate)
        rows.append((step + 1, losses[step], b, a))
    worst = {}
    for name, grad in exact.gradients.items():
        ours, their = far(of("gradients." + name), grad), far(same.gradients[name], grad)
        before = worst.get(grouped(name), (0.0, 0.0))
        worst[grouped(name)] = (max(before[0], ours), max(before[1], their))
    print(f"\n{texts['name']} {kind}: {tokens.shape[1]} x {tokens.shape[2]} tokens, {len(rates)} steps\n")
    lines = [["logits, greatest difference", f"{most:.2e}", f"{own:.2e}"]]
    lines += [["gradient of " + name, f"{a:.2e}", f"{b:.2e}"] for name, (a, b) in worst.items()]
    print(table(["error, from PyTorch's float32", "ours", "PyTorch's " + kind], lines))
    print()
    print(table(["step", "our loss", "PyTorch's " + kind, "PyTorch's float32"], [[s, f"{a:.6f}", f"{b:.6f}", f"{c:.6f}"] for s, a, b, c in rows]))
    in_logits, in_gradients, in_losses = BOUNDS[kind]
    failures = []
    if in_logits is not None and most > in_logits:
        failures.append(f"logits: {most:.2e} is more than {in_logits}")
    failures += [f"gradient of {name}: {a:.2e} is more than {in_gradients}" for name, (a, _) in worst.items() if not a <= in_gradients]
    failures += [f"loss of step {s}: {a} and {b}" for s, a, b, _ in rows if not abs(a - b) <= in_losses * (abs(b) if kind == "float32" else 1)]
    print("\n" + ("\n".join("FAILED: " + f for f in failures) or "all bounds hold"))
    return not failures


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("files", nargs="+")
    arguments.add_argument("--device", default="cuda")
    a = arguments.parse_args()
    results = [compare(path, a.device) for path in a.files]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
