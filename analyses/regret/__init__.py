"""How good are choices by the law? Regret of five rules under budgets, in sample and held out (separable-law paper, 5.2, E.3, E.4)."""

from analyses.regret.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
