"""How far do visual tokens move with input size? Spans, questions whose count never changes, decreases (separable-law paper, 4.2, D.2)."""

from analyses.tokens.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
