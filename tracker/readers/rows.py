"""The rows of a chunk on their way to records: their columns, and which of them are refused and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.batch import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.readers.columns import Checked
    from tracker.readers.tabular import Chunk


@dataclass(slots=True)
class Rows:
    """Columns by native name, and by row: what is refused and what is only noted."""

    chunk: Chunk
    columns: dict[str, Any]
    refused: dict[int, str] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Rows of the chunk, refused ones included."""
        return len(self.chunk.lines)

    def reject(self, column: str, checked: Checked) -> None:
        """Refuse the rows with a problem in a column; the first problem of a row counts."""
        for row, problem in checked.problems.items():
            self.refused.setdefault(row, f"column {column}: {problem}")

    def good(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows are not refused."""
        mask = np.ones(len(self), bool)
        mask[list(self.refused)] = False
        return mask

    def refusals(self, file: str) -> Iterator[Refusal]:
        """Refused and noted rows in file order."""
        merged = {**self.notes, **self.refused}
        for row in sorted(merged):
            line = self.chunk.lines[row]
            reason = merged[row] if self.chunk.unit == "line" else f"{self.chunk.unit} {line}: {merged[row]}"
            yield Refusal(file=file, line=line, reason=reason, text=self.chunk.text(row))
