"""Runs as Every Eval Ever documents: what `trackr export every-eval-ever` writes."""

from tracker.every_eval_ever.export import Choices, Export, export

__all__ = ["Choices", "Export", "export"]
