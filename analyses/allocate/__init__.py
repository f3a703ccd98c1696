"""How to spend a budget: N* and R* in closed form for each group (separable-law paper, 5.1 and E.2, Eqs. 26 and 35)."""

from analyses.allocate.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
