"""Aggregate scores of VLMEvalKit: `_acc.csv`, `_score.csv`, `_score.json`, `_rating.json` and what status.json repeats of them.

Every number is kept on its file's own scale: fractions, percentages and points stand side by side in this format.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, Refusal
from tracker.errors import InputError
from tracker.readers import tabular, xlsx
from tracker.readers.lines import json_document
from tracker.readers.tabular import Chunk, Truncated
from tracker.readers.values import NOTHING, Number, number, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

WHOLE = frozenset({"overall", "none", "all", "total", "average", ""})
"""How these files name the whole data set, so that it needs no name."""
_NAMING = frozenset({"split", "cycle", "type", "category", "task", "task&skill", "l2-category", "subset", "domain", "unnamed: 0"})
"""Columns that name a part of the data set even where they hold numbers."""
_MOST = 5_000


def read_totals(paths: Iterable[Path]) -> tuple[tuple[AggregateScore, ...], list[Refusal]]:
    """The scores of some files, each name once: where a second file gives another value its name has the file's ending behind it."""
    scores: dict[str, AggregateScore] = {}
    refusals: list[Refusal] = []
    for path in paths:
        found: list[tuple[str, Number]] = []
        try:
            found = list(_of_file(path, refusals))
        except InputError as err:
            refusals.append(Refusal(file=str(path), reason=err.reason))
        for name, value in found[:_MOST]:
            if name in scores and (scores[name].value, scores[name].special) == tuple(value):
                continue
            label = name if name not in scores else f"{name} ({path.stem.rpartition('_')[2]})"
            scores.setdefault(label, AggregateScore(metric=label, value=value.value, special=value.special))
        if len(found) > _MOST:
            refusals.append(Refusal(file=str(path), reason=f"{len(found)} numbers: more than {_MOST} aggregate scores are not kept"))
    return tuple(scores.values()), refusals


def of_status(metrics: Any) -> tuple[AggregateScore, ...]:
    """The scores that status.json repeats: names such as `split=none|Overall`."""
    if not isinstance(metrics, dict):
        return ()
    found: dict[str, Number] = {}
    for name, value in metrics.items():
        told = number(value)
        if isinstance(value, bool) or told == NOTHING:
            continue
        parts = [part.partition("=")[2] if "=" in part else part for part in str(name).split("|")]
        found.setdefault(_name(parts[-1], parts[:-1]), told)
    return tuple(AggregateScore(metric=name, value=one.value, special=one.special) for name, one in found.items())


def _of_file(path: Path, refusals: list[Refusal]) -> Iterator[tuple[str, Number]]:
    if path.suffix == ".json":
        yield from _nested(json_document(path), [])
        return
    share = re.search(r"_acc$", path.stem) is not None
    pieces = xlsx.chunks(path) if path.suffix == ".xlsx" else tabular.chunks(path, "tsv" if path.suffix == ".tsv" else "csv")
    for piece in pieces:
        if isinstance(piece, Chunk):
            yield from _of_rows(piece, share=share)
        elif isinstance(piece, Refusal):
            refusals.append(piece)
        elif isinstance(piece, Truncated):
            refusals.append(Refusal(file=str(path), line=piece.line, reason="the file is cut off (run the evaluation again)"))


def _of_rows(chunk: Chunk, *, share: bool) -> Iterator[tuple[str, Number]]:
    """Columns of numbers by the parts that the other columns name. In a table of accuracies the columns themselves are parts."""
    rows = chunk.dicts()
    naming = [name for name in chunk.columns if _names_parts(name, [row.get(name) for row in rows])]
    for row in rows:
        parts = [text(row.get(name)) or "" for name in naming]
        for name, value in row.items():
            told = number(value)
            if name in naming or isinstance(value, bool) or told == NOTHING:
                continue
            if share and name.lower() not in {"accuracy", "acc"}:
                yield _name("accuracy", [*parts, name]), told
            else:
                yield _name(name, parts), told


def _names_parts(name: str, told: list[Any]) -> bool:
    some = [value for value in told if value is not None]
    return name.strip().lower() in _NAMING or any(isinstance(value, bool) or number(value) == NOTHING for value in some)


def _nested(value: Any, parts: list[str]) -> Iterator[tuple[str, Number]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _nested(one, [*parts, str(name)])
    elif isinstance(value, list) and len(value) <= 200 and len(parts) < 8:
        for place, one in enumerate(value):
            yield from _nested(one, [*parts, str(place)] if len(value) > 1 else parts)
    elif not isinstance(value, bool) and (told := number(value)) != NOTHING:
        yield ".".join(parts) or "value", told


def _name(metric: str, parts: Iterable[str]) -> str:
    """A metric of a part of the data set: `accuracy.math`; of the whole: `accuracy`."""
    return ".".join([metric.strip(), *(part.strip() for part in parts if part.strip().lower() not in WHOLE)])
