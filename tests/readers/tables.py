"""Reading one file with a reader, for tests of the table readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, RunHeader
from tracker.readers.base import Folder, Reader
from tracker.study import Study

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Read:
    """What a reader yielded for one file."""

    batches: list[Batch]
    refusals: list[Refusal]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches for row in batch.records.to_pylist()]

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches if batch.questions is not None for row in batch.questions.to_pylist()]

    @property
    def labels(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches if batch.labels is not None for row in batch.labels.to_pylist()]

    @property
    def scores(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches if batch.record_scores is not None for row in batch.record_scores.to_pylist()]

    @property
    def header(self) -> RunHeader:
        return self.batches[-1].run

    @property
    def reasons(self) -> dict[int | None, str]:
        return {one.line: one.reason for one in self.refusals}


def finds(reader: Reader, path: Path, study: Study | None = None) -> bool:
    return bool(reader.find(Folder(path.parent, [path.name]), study or Study.empty()))


def read(reader: Reader, path: Path, study: Study | None = None) -> Read:
    study = study or Study.empty()
    (source,) = reader.find(Folder(path.parent, [path.name]), study)
    items = list(reader.read(source, study))
    return Read([one for one in items if isinstance(one, Batch)], [one for one in items if isinstance(one, Refusal)])
