"""Tables of the tokens analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.law.tables import group_columns, median, whole
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.tokens.counts import Counts


def unchanged_table(counts: Sequence[Counts]) -> Table:
    """Questions whose token count does not move with input size, by model and benchmark, and over both for each series."""
    columns = (
        Column("series", "series of the model; empty where unknown"),
        Column("model", "model; empty: all models of the series"),
        Column("benchmark", "benchmark; empty: all benchmarks"),
        Column("sizes", "input sizes that are compared", "count"),
        Column("smallest", "smallest of them, px", "count"),
        Column("largest", "largest of them, px", "count"),
        Column("questions", "questions with visual tokens at every one of them (times models, where these are taken together)", "count"),
        Column("ends", "share of these with the same visual tokens at the smallest and the largest size", "share"),
        Column("all", "share with the same visual tokens at every size", "share"),
        Column("falling", "share with fewer visual tokens at some size than at the size before", "share"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for series in dict.fromkeys(one.series for one in counts):
        members = [one for one in counts if one.series == series]
        _unchanged(rows, members, series=series, model=None, benchmark=None)
        for model in dict.fromkeys(one.model for one in members):
            some = [one for one in members if one.model == model]
            _unchanged(rows, some, series=series, model=model, benchmark=None)
            for one in some:
                _unchanged(rows, [one], series=series, model=model, benchmark=one.benchmark)
    return Table.of(
        "Unchanged: questions whose visual tokens do not move over the input sizes that all suites share", columns, rows, shown=20
    )


def _unchanged(rows: dict[str, list[Any]], counts: Sequence[Counts], **labels: str | None) -> None:
    complete = int(sum(one.complete.sum() for one in counts))
    ends, every, falling = (
        int(sum((which & one.complete).sum() for one, which in zip(counts, some, strict=True)))
        for some in ([one.same_at_ends() for one in counts], [one.same_at_all() for one in counts], [one.falls() for one in counts])
    )
    values = {
        **labels,
        "sizes": max(len(one.sizes) for one in counts),
        "smallest": min(int(one.sizes[0]) for one in counts),
        "largest": max(int(one.sizes[-1]) for one in counts),
        "questions": complete,
        "ends": ends / complete if complete else None,
        "all": every / complete if complete else None,
        "falling": falling / complete if complete else None,
    }
    for name, value in values.items():
        rows[name].append(value)


def spans_table(study: CellStudy, shared: Sequence[float]) -> Table:
    """Largest over smallest mean token count of each group's cells (4.2, Figure 5a)."""
    cells, groups = study.cells, study.groups
    inside = np.isin(cells.input_size, list(shared))
    data: dict[str, list[Any]] = {name: [] for name in ("family", "cells", "lowest", "highest", "span", "shared_span")}
    for group in range(len(groups)):
        members = groups.members(group)
        members = members[~np.isnan(cells.tokens[members])]
        families = set(cells.text["family"][members].tolist())
        tokens, some = cells.tokens[members], cells.tokens[members[inside[members]]]
        data["family"].append(families.pop() if len(families) == 1 else None)
        data["cells"].append(len(members))
        data["lowest"].append(tokens.min() if len(tokens) else None)
        data["highest"].append(tokens.max() if len(tokens) else None)
        data["span"].append(_ratio(tokens))
        data["shared_span"].append(_ratio(some))
    labels = {name: groups.column(name) for name in groups.by}
    columns = {column.name: column for column in group_columns(groups.by)}
    columns |= {
        column.name: column
        for column in (
            Column("family", "family of the group's models; empty where they differ"),
            Column("cells", "cells with visual tokens", "count"),
            Column("lowest", "smallest mean visual tokens of a cell", "number"),
            Column("highest", "largest mean visual tokens of a cell", "number"),
            Column("span", "largest over smallest", "number"),
            Column("shared_span", "the same over the input sizes that all suites share", "number"),
        )
    }
    return Table.of("Spans: range of the mean visual tokens of each group's cells", list(columns.values()), {**data, **labels})


def _ratio(tokens: npt.NDArray[np.float64]) -> float | None:
    return float(tokens.max() / tokens.min()) if len(tokens) > 1 and tokens.min() > 0 else None


def medians_table(spans: Table) -> Table:
    """Median and range of the spans by family."""
    columns = (
        Column("family", "family; empty where unknown"),
        Column("groups", "groups", "count"),
        Column("lowest", "smallest mean visual tokens of a cell", "number"),
        Column("highest", "largest mean visual tokens of a cell", "number"),
        *(
            Column(f"{name}_{what}", f"{word} {about}", "number")
            for name, about in (("span", "span of a group"), ("shared_span", "span of a group over the input sizes that all suites share"))
            for what, word in (("median", "median"), ("min", "smallest"), ("max", "largest"))
        ),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    listed = spans.rows()
    for family in sorted({row["family"] for row in listed}, key=lambda family: (family is None, str(family))):
        some = [row for row in listed if row["family"] == family]
        rows["family"].append(family)
        rows["groups"].append(len(some))
        rows["lowest"].append(min((row["lowest"] for row in some if row["lowest"] is not None), default=None))
        rows["highest"].append(max((row["highest"] for row in some if row["highest"] is not None), default=None))
        for name in ("span", "shared_span"):
            values = np.array([row[name] for row in some if row[name] is not None], dtype=float)
            rows[f"{name}_median"].append(median(values))
            rows[f"{name}_min"].append(values.min() if len(values) else None)
            rows[f"{name}_max"].append(values.max() if len(values) else None)
    return Table.of("Medians: spans by family", columns, rows)


def decreases_table(counts: Sequence[Counts]) -> Table:
    """Where the mean token count falls although the input size rises, over the questions that state tokens at both sizes."""
    columns = (
        Column("series", "series of the model; empty where unknown"),
        Column("model", "model"),
        Column("benchmark", "benchmark"),
        Column("size", "input size, px", "count"),
        Column("next_size", "next larger input size, px", "count"),
        Column("questions", "questions with visual tokens at both", "count"),
        Column("tokens", "their mean visual tokens at the smaller size", "number"),
        Column("next_tokens", "their mean visual tokens at the larger size", "number"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for one in counts:
        sizes = whole(one.sizes)
        for place in range(len(sizes) - 1):
            both = ~np.isnan(one.tokens[:, place : place + 2]).any(axis=1)
            if not both.any():
                continue
            here, there = one.tokens[both, place].mean(), one.tokens[both, place + 1].mean()
            if there < here:
                entries = (one.series, one.model, one.benchmark, sizes[place], sizes[place + 1], int(both.sum()), here, there)
                for name, entry in zip(rows, entries, strict=True):
                    rows[name].append(entry)
    return Table.of("Decreases: mean visual tokens that fall although the input size rises", columns, rows)


def pair_table(counts: Sequence[Counts], models: Sequence[str]) -> Table:
    """Named models on the questions for which all of them state tokens at every shared size (D.2)."""
    columns = (
        Column("model", "model"),
        Column("benchmark", "benchmark; empty: all benchmarks that the models share"),
        Column("questions", "questions with visual tokens of every named model at every shared size", "count"),
        Column("ends_count", "of these, the same visual tokens at the smallest and the largest size", "count"),
        Column("all_count", "of these, the same visual tokens at every size", "count"),
        Column("ends", "their share", "share"),
        Column("all", "their share", "share"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    by = {(one.model, one.benchmark): one for one in counts}
    benchmarks = [name for name in dict.fromkeys(one.benchmark for one in counts) if all((model, name) in by for model in models)]
    common = {name: _common([by[model, name] for model in models]) for name in benchmarks}
    for model in models:
        chosen = {name: by[model, name].only(np.isin(by[model, name].questions, common[name])) for name in benchmarks}
        for benchmark, some in [(None, list(chosen.values())), *((name, [one]) for name, one in chosen.items())]:
            total = sum(len(one.questions) for one in some)
            ends, every = (
                int(sum(same.sum() for same in sames))
                for sames in ([one.same_at_ends() for one in some], [one.same_at_all() for one in some])
            )
            entries = (model, benchmark, total, ends, every, ends / total if total else None, every / total if total else None)
            for name, entry in zip(rows, entries, strict=True):
                rows[name].append(entry)
    return Table.of("Pair: named models on their common questions", columns, rows)


def _common(counts: Sequence[Counts]) -> npt.NDArray[np.int64]:
    """Questions that are complete for every model, at the same sizes."""
    sizes = [tuple(one.sizes.tolist()) for one in counts]
    if len(set(sizes)) > 1:
        return np.zeros(0, dtype=np.int64)
    found = counts[0].questions[counts[0].complete]
    for one in counts[1:]:
        found = np.intersect1d(found, one.questions[one.complete])
    return found
