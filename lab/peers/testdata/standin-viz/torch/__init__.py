"""A stand-in for PyTorch with just what snapshot_check.py calls."""

__version__ = "stand-in"
