"""Error floors by domain and skill: fits per pairing, marginals and variance shares (separable-law paper, 3.3, C.4, C.5)."""

from analyses.taxonomy.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
