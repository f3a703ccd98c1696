"""Does the law predict what it has not seen? A backbone size, an input size or both left out (separable-law paper, B.5 and B.6)."""

from analyses.holdout.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
