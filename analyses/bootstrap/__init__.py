"""How sure are the fits? Refits on resampled image clusters (separable-law paper, B.4 and B.7)."""

from analyses.bootstrap.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
