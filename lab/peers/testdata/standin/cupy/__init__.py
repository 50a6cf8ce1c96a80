"""A stand-in for CuPy with just what its peer calls. It keeps nothing and knows limits."""

from cupy import cuda  # noqa: F401  (found here by the peer)
