"""How fast does error fall with N and with R? Exponents of group fits and of task fits (separable-law paper, 4.1, 4.3, D.1)."""

from analyses.exponents.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
