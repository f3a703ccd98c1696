"""How far do visual tokens move with input size? Spans, questions whose count never changes, decreases (separable-law paper, 4.2, D.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from analyses.cells import CellParameters, study_of_cells
from analyses.notes import Note, merged
from analyses.result import Charts
from analyses.tokens.counts import counted, shared_sizes
from analyses.tokens.tables import decreases_table, medians_table, pair_table, spans_table, unchanged_table
from tracker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.cells import CellStudy
    from analyses.result import Result, Table
    from analyses.session import StarSession

NAME = "tokens"


class Parameters(CellParameters):
    """Options of the tokens analysis."""

    models: tuple[str, ...] = Field(
        default=(), description="compare these models on the questions for which all of them state visual tokens at all shared input sizes"
    )


def run(session: StarSession, parameters: Parameters) -> Result:
    """Say how input size moves the visual tokens of each model on each benchmark."""
    study = study_of_cells(session, NAME, parameters)
    cells = study.cells
    shared = shared_sizes(cells)
    counts = counted(study, shared)
    tables = {
        "unchanged": unchanged_table(counts),
        "spans": spans_table(study, shared),
        "decreases": decreases_table(counted(study, None)),
    }
    tables["medians"] = medians_table(tables["spans"])
    if parameters.models:
        tables["pair"] = pair_table(counts, _known(study, parameters.models))
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(tables, shared),
        tables=tables,
        charts=_charts(tables),
        warnings=[*study.warnings, *_warnings(study, shared, tables)],
    )


def _known(study: CellStudy, models: Sequence[str]) -> tuple[str, ...]:
    there = sorted({str(model) for model in study.cells.text["model"].tolist()})
    for model in models:
        if model not in there:
            message = f"no cell is of a model {model!r}"
            raise UsageError(message, where="--models", hint="there are: " + ", ".join(there))
    return tuple(dict.fromkeys(models))


def _headline(tables: dict[str, Table], shared: Sequence[float]) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "groups": len(tables["spans"]),
        "shared_sizes": len(shared),
        "decreases": len(tables["decreases"]),
    }
    for row in tables["medians"].rows():
        family = row["family"] or "none"
        numbers |= {f"median_span_{family}": row["span_median"], f"median_shared_span_{family}": row["shared_span_median"]}
    for row in tables["unchanged"].rows():
        if row["model"] is None and row["benchmark"] is None:
            numbers |= {f"unchanged_ends_{row['series'] or 'none'}": row["ends"], f"unchanged_all_{row['series'] or 'none'}": row["all"]}
    if "pair" in tables:
        for row in tables["pair"].rows():
            if row["benchmark"] is None:
                numbers |= {f"questions_{row['model']}": row["questions"], f"unchanged_all_{row['model']}": row["all"]}
    return numbers


def _charts(tables: dict[str, Table]) -> Charts:
    def draw() -> Any:
        from analyses.tokens.charts import ranges

        return ranges(tables["spans"])

    return Charts({"ranges": partial(draw)})


def _warnings(study: CellStudy, shared: Sequence[float], tables: dict[str, Table]) -> list[str]:
    cells, groups = study.cells, study.groups
    notes = []
    for group in range(len(groups)):
        name = groups.name(group) or "all cells"
        members = groups.members(group)
        lacking = np.isnan(cells.tokens[members])
        if lacking.any():
            some = f"{int(lacking.sum()):,} of {len(members):,} cells state no visual_tokens"
            notes.append(Note(name, some, "cells state no visual_tokens"))
        if not np.isnan(cells.input_size[members]).all() and len(set(cells.input_size[members][~lacking].tolist())) == 1:
            notes.append(Note(name, "one input size, so there is no change to speak of"))
        if np.isnan(cells.input_size[members]).all():
            notes.append(Note(name, "no cell states its input size"))
    warnings = merged(notes, len(groups))
    if not len(shared):
        warnings.append("no input size is shared by all suites: spans over shared sizes are empty")
    if not len(tables["unchanged"]):
        warnings.append("no model has visual tokens at two input sizes of a benchmark")
    return warnings
