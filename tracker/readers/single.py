"""Rows of one run in native columns become batches under one header: what most readers of evaluation output need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracker.batch import Batch, Refusal, empty_records
from tracker.readers.assemble import Assembler
from tracker.readers.tabular import Chunk, Truncated, without_gc
from tracker.readers.values import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tracker.batch import AggregateScore, RunHeader

CUT_OFF = "the file is cut off"


def run_batches(
    file: str,
    header: RunHeader,
    pieces: Iterable[Chunk | Refusal | Truncated],
    *,
    scores: Sequence[AggregateScore] = (),
    label_source: str = "run",
    extra_scores: bool = False,
) -> Iterator[Batch | Refusal]:
    """Batches of one run. `pieces` hold native columns (docs/native-table.md), without those that describe the run.

    Further scores are columns `scores.NAME`; what else has no meaning is kept in settings where it is constant in
    the run. A run without any usable row still comes, with its scores. A piece that is cut off makes a finished run
    partial. `label_source` is the source of the labels `domain` and `skill`.
    """
    fixed = {"model": header.model, "benchmark": header.benchmark or "-"}
    assembler = Assembler(file, fixed=fixed, extra_scores=extra_scores, label_source=label_source)
    first, final = True, header
    for piece in pieces:
        if isinstance(piece, Refusal):
            yield piece
        elif isinstance(piece, Truncated):
            if final.status == "finished":
                final = final.model_copy(update={"status": "partial", "status_reason": f"{CUT_OFF} in line {piece.line}"})
        else:
            with without_gc():
                made = [*assembler.add(piece)]
            for one in made:
                if isinstance(one, Refusal):
                    yield one
                    continue
                run = header.model_copy(update={"settings": header.settings | one.run.settings})
                yield replace(one, run=run, scores=tuple(scores) if first else ())
                first = False
                final = final.model_copy(update={"settings": final.settings | one.run.settings})
    if first or final.status != header.status:
        yield Batch(run=final, records=empty_records(), scores=tuple(scores) if first else ())


def chunk_of(rows: Sequence[dict[str, Any]], lines: Sequence[int] | None = None, unit: str = "row") -> Chunk:
    """Rows as a chunk; `lines` are their places in the file (default: 1, 2, ...), `unit` what a place is."""
    return Chunk(columns=columns_of(rows), lines=list(lines) if lines is not None else list(range(1, len(rows) + 1)), unit=unit)
