"""Which functional form fits best? Five forms on the same cells with shared shapes, and two with each group's own (separable-law paper, 2.4, B.3)."""

from analyses.forms.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
