"""Which of two or more is better? Paired differences on common questions; beyond the separable-law paper."""

from analyses.compare.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
