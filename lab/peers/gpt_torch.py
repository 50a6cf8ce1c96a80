"""GPT-2's decoder in PyTorch, as gpt_parity.py and gpt_speed.py compare it with examples/gpt: after nanoGPT, with
scaled_dot_product_attention, the names and layouts of the published checkpoints, and a head that shares the token table."""

import math

import torch
from torch import nn
from torch.nn import functional as F

EPSILON = 1e-5  # of layer norms

SIZES = {  # layers, width, heads, positions, vocabulary
    "tiny": (2, 32, 2, 16, 256),
    "char": (6, 384, 6, 256, 256),
    "124m": (12, 768, 12, 1024, 50304),
}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in self.c_attn(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width, eps=EPSILON), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width, eps=EPSILON), MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, eps=EPSILON)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def logits(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def forward(self, tokens, targets):
        logits = self.logits(tokens)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.reshape(-1))


def optimizer(model, rate, beta1=0.9, beta2=0.95, epsilon=1e-8, decay=0.1, capturable=False):
    """AdamW, which lets weights and tables decay, and biases and norms not."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(beta1, beta2), eps=epsilon, fused=True, capturable=capturable)


def transposed(name):
    """Whether a published checkpoint has the matrix as (inputs, outputs), which nn.Linear has as (outputs, inputs)."""
    return name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
