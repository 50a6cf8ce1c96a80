"""A stand-in for PyTorch with just what torch_kernels.py calls. It computes shapes, and refuses those that do not fit."""

import contextlib
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

    def contiguous(self):
        return self

    def bfloat16(self):
        return Tensor(*self.shape, kind="bfloat16")

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
    def gelu(a):
        return a

    @staticmethod
    def layer_norm(x, shape, weight, bias, epsilon):
        assert shape == weight.shape == bias.shape == x.shape[-1:]
        return x


    @staticmethod
    def scaled_dot_product_attention(q, k, v, is_causal):
        assert k.shape == v.shape and q.shape[:2] == k.shape[:2] and q.shape[3] == k.shape[3] and q.kind == k.kind == v.kind == "bfloat16"
        assert is_causal == (q.shape[2] > 1)
        return Tensor(*q.shape, kind=q.kind)


class _Autograd:
    @staticmethod
    def grad(result, operands, grad):
        assert result.shape == grad.shape
        return tuple(operands)


nn = types.SimpleNamespace(functional=_Functional)
autograd = _Autograd
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
