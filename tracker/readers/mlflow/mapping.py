"""An MLflow run becomes batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.batch import Batch, Refusal, Source
    from tracker.readers.mlflow.model import MlflowRun
    from tracker.study import Study


def batches(run: MlflowRun, source: Source, study: Study) -> Iterator[Batch | Refusal]:
    """A run with its metric histories, scores and records; `source` is where it was found."""
    raise NotImplementedError
    yield
