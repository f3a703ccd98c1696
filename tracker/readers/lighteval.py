"""Lighteval output folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.batch import Batch, Refusal, Source
    from tracker.readers.base import Folder
    from tracker.study import Study


@dataclass(frozen=True, slots=True)
class LightEvalReader:
    """Reads lighteval output folders."""

    name: str = "lighteval"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """Nothing yet."""
        del folder, study
        return ()

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Nothing yet."""
        del source, study
        return iter(())


READER = LightEvalReader()
