"""A stand-in for PyTorch with just what torch_kernels.py calls. It computes shapes, and refuses those that do not fit."""

import contextlib
import math
import time
import types

__version__ = "stand-in"


class Tensor:
    def __init__(self, *shape, kind="float32"):
        self.shape, self.kind = tuple(shape), kind

    def _with(self, other):
        if isinstance(other, Tensor):
            if other.kind != self.kind or other.shape != self.shape[len(self.shape) - len(other.shape):]:
                raise RuntimeError(f"{self.shape} and {other.shape} do not fit")
        return Tensor(*self.shape, kind=self.kind)

    __add__ = __sub__ = __mul__ = _with

    def __matmul__(self, other):
        if other.kind != self.kind or other.shape[0] != self.shape[1]:
            raise RuntimeError(f"{self.shape} and {other.shape} do not fit")
        return Tensor(self.shape[0], other.shape[1], kind=self.kind)

    def sum(self, dim=None):
        if dim is None:
            return Tensor()
        shape = list(self.shape)
        del shape[dim]
        return Tensor(*shape, kind=self.kind)

    argmax = sum

    def t(self):
        return Tensor(*reversed(self.shape), kind=self.kind)

    def reshape(self, *shape):
        assert math.prod(shape) == math.prod(self.shape)
        return Tensor(*shape, kind=self.kind)

    def __getitem__(self, indices):
        assert indices.kind == "int64"
        return Tensor(*indices.shape, *self.shape[1:], kind=self.kind)

    def transpose(self, a, b):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return Tensor(*shape, kind=self.kind)

    def flatten(self, first, last):
        return Tensor(*self.shape[:first], math.prod(self.shape[first:last + 1]), *self.shape[last + 1:], kind=self.kind)

    def contiguous(self):
        return self

    def bfloat16(self):
        return Tensor(*self.shape, kind="bfloat16")

    def float(self):
        return Tensor(*self.shape)

    def requires_grad_(self):
        return self

    def copy_(self, other):
        return _into(self, other)

    def detach(self):
        return Tensor(*self.shape, kind=self.kind)

    def requires_grad_(self):
        return self


def _into(out, result):
    if out is None:
        return result
    if out.shape != result.shape or out.kind != result.kind:
        raise RuntimeError(f"{result.shape} does not fit into {out.shape}")
    return out


def randn(shape, device):
    assert device == "cuda" and isinstance(shape, tuple)
    return Tensor(*shape)


def arange(first, end, step, device):
    assert device == "cuda"
    return Tensor(len(range(first, end, step)), kind="int64")


def add(a, b, out=None):
    return _into(out, a + b)


def sum(a, dim, out=None):
    return _into(out, a.sum(dim))


def matmul(a, b, out=None):
    return _into(out, a @ b)


def var(a, dim, correction):
    assert correction == 0
    return a.sum(dim)


def relu(a):
    return a


def softmax(a, dim):  # no out: as a PyTorch that lacks the form
    return a


def manual_seed(_):
    pass


def compile(function, dynamic):
    assert dynamic is False
    return function


class _Functional:
    @staticmethod
    def gelu(a, approximate="none"):
        assert approximate in ("none", "tanh")
        return a

    @staticmethod
    def linear(x, weight, bias):
        assert bias.shape == weight.shape[:1]
        return x @ weight.t()

    @staticmethod
    def layer_norm(x, shape, weight, bias, epsilon):
        assert shape == weight.shape == bias.shape == x.shape[-1:]
        return x

    @staticmethod
    def scaled_dot_product_attention(q, k, v, is_causal):
        assert k.shape == v.shape and q.shape[:2] == k.shape[:2] and q.shape[3] == k.shape[3] and q.kind == k.kind == v.kind == "bfloat16"
        assert is_causal == (q.shape[2] > 1)
        return Tensor(*q.shape, kind=q.kind)

    @staticmethod
    def cross_entropy(logits, targets):
        assert logits.kind == "float32" and targets.kind == "int64" and targets.shape == logits.shape[:1]
        return Tensor()


def randint(low, high, shape, device):
    assert low == 0 < high and device == "cuda"
    return Tensor(*shape, kind="int64")


def _grad(result, of, grad=None):
    if grad is None:
        assert result.shape == ()
        return (of,)
    assert result.shape == grad.shape
    return tuple(of)


def _norm_backward(grad, x, shape, mean, factor, weight, bias, wanted):
    assert shape == [x.shape[-1]] and grad.shape == x.shape and mean.shape == factor.shape == (x.shape[0], 1) and wanted == [True] * 3
    return x, weight, bias


def _embedding_backward(grad, indices, rows, padding, scaled):
    assert indices.kind == "int64" and padding == -1 and not scaled
    return Tensor(rows, grad.shape[-1], kind=grad.kind)


class _AdamW:
    def __init__(self, parameters, lr, fused, capturable):
        assert fused and capturable and all(p.grad.shape == p.shape for p in parameters)

    def step(self):
        pass


autograd = types.SimpleNamespace(grad=_grad)
ops = types.SimpleNamespace(
    aten=types.SimpleNamespace(native_layer_norm_backward=_norm_backward, embedding_dense_backward=_embedding_backward),
)
optim = types.SimpleNamespace(AdamW=_AdamW)
nn = types.SimpleNamespace(functional=_Functional, utils=types.SimpleNamespace(get_total_norm=lambda all: Tensor()))
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)))


class _Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.at = None

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


class _Stream:
    def wait_stream(self, _):
        pass


class _Graph:
    def replay(self):
        pass


cuda = types.SimpleNamespace(
    Event=_Event, Stream=_Stream, CUDAGraph=_Graph, synchronize=lambda: None, current_stream=_Stream, get_device_name=lambda: "stand-in",
    stream=lambda _: contextlib.nullcontext(), graph=lambda _: contextlib.nullcontext(),
)
