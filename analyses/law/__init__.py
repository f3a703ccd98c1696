"""The separable law L = e + A/N^alpha + B/R^beta, fitted to every group of cells (separable-law paper, 2.3, 2.4, B.1, B.2)."""

from analyses.law.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
