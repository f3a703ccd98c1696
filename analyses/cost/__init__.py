"""What an answer costs: C = kappa N^p R^q, and where a growing budget goes (separable-law paper, 5.1, E.1, Table 29)."""

from analyses.cost.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
