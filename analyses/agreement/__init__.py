"""Can the scores be trusted? Text against logit predictions, token limits and parser failures (separable-law paper, A.5)."""

from analyses.agreement.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
