"""The tables of the agreement of signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.intervals import wilson
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.agreement.counts import Counts

    Marks = npt.NDArray[np.bool_]

COLUMNS = (
    Column("records", "records of current runs", "count"),
    Column("scored", "records with a credit", "count"),
    Column("unscored", "records that were answered and have no credit", "count"),
    Column("failed", "records that failed", "count"),
    Column("accuracy", "mean credit of the scored records", "share"),
    Column(
        "one_signal", "scored records whose prediction is the option of the best score: no text was generated, nothing to compare", "count"
    ),
    Column("both_signals", "scored records with a text and a logit prediction, those of one_signal left out", "count"),
    Column("agree", "of these, those whose two predictions are the same", "count"),
    Column("agreement", "their share", "share"),
    Column("agreement_low", "low end of its 95% Wilson interval", "share"),
    Column("agreement_high", "high end of its 95% Wilson interval", "share"),
    Column("judged", "records with both signals and a reference answer that predictions can be held against", "count"),
    Column("accuracy_text", "mean credit of the judged records", "share"),
    Column("accuracy_logit", "share of the judged records whose logit prediction is the reference answer", "share"),
    Column("only_text_right", "judged records where only the text prediction is right", "count"),
    Column("only_logit_right", "judged records where only the logit prediction is right", "count"),
    Column("without_option", "generations in which the parser found no answer", "count"),
    Column("at_limit", "generations as long as max_new_tokens allows; empty where tokens or limit are not recorded", "count"),
    Column("at_limit_share", "their share of the generations with known tokens and limit", "share"),
    Column("at_limit_without_option", "of these, those in which the parser found no answer", "count"),
)


def shares_table(counts: Counts, by: Sequence[str]) -> Table:
    """All records, and by each label (A.5)."""
    groups: list[tuple[str, str | None, Marks]] = [("all", "all", np.ones(len(counts), dtype=bool))]
    for name in by:
        values = counts.text[name].tolist()
        ordered = sorted(set(values), key=lambda value: (value is None, str(value)))
        groups += [(name, value, np.array([one == value for one in values], dtype=bool)) for value in ordered]
    columns = [Column("by", "label that the records are grouped by"), Column("value", "its value; empty where there is none")]
    rows = [{"by": name, "value": value} | summary(counts, members) for name, value, members in groups]
    return _table("Pooled: agreement of the two predictions, and what went wrong", columns, rows)


def runs_table(counts: Counts, keys: Sequence[str]) -> Table:
    """The same by configuration, or by run."""
    meanings = {
        "model": "model",
        "settings": "settings in which the model's configurations differ",
        "benchmark": "benchmark",
    }
    columns = [Column(name, meanings[name]) for name in keys]
    names = list(zip(*(counts.text[name].tolist() for name in keys), strict=True))
    number: dict[tuple[Any, ...], int] = {}
    code = np.array([number.setdefault(one, len(number)) for one in names], dtype=np.int64)
    members = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    rows = [dict(zip(keys, name, strict=True)) | summary(counts, members[place]) for name, place in number.items()]
    title = "Runs: each configuration on each benchmark" if "benchmark" in keys else "Configurations: each over its benchmarks"
    return _table(title, columns, rows, shown=12)


def summary(counts: Counts, members: Marks | npt.NDArray[np.int64]) -> dict[str, Any]:
    """Counts and shares of some entries (by mark or place); None where the records do not hold what it takes."""
    n = {name: float(values[members].sum()) for name, values in counts.numbers.items()}
    low, high = wilson(n["agree"], n["both_signals"])
    whole = {
        name: int(n[name])
        for name in ("records", "scored", "unscored", "failed", "one_signal", "both_signals", "agree", "judged", "without_option")
    }
    judged = {name: int(n[name]) if n["judged"] else None for name in ("only_text_right", "only_logit_right")}
    limit = {name: int(n[name]) if n["limited"] else None for name in ("at_limit", "at_limit_without_option")}
    return (
        whole
        | judged
        | limit
        | {
            "accuracy": _share(n["credit"], n["scored"]),
            "agree": int(n["agree"]) if n["both_signals"] else None,
            "agreement": _share(n["agree"], n["both_signals"]),
            "agreement_low": float(low),
            "agreement_high": float(high),
            "accuracy_text": _share(n["credit_judged"], n["judged"]),
            "accuracy_logit": _share(n["logit_right"], n["judged"]),
            "at_limit_share": _share(n["at_limit"], n["limited"]),
        }
    )


def headline_of(counts: Counts) -> dict[str, Any]:
    """The numbers of A.5."""
    every = summary(counts, np.ones(len(counts), dtype=bool))
    shown = (
        "records", "scored", "unscored", "failed", "one_signal", "both_signals", "agree", "agreement", "accuracy_text", "accuracy_logit", "without_option",
        "at_limit", "at_limit_share", "at_limit_without_option",
    )  # fmt: skip
    return {"runs": int(counts.run.max()) + 1} | {name: every[name] for name in shown}


def limits_table(counts: Counts) -> Table:
    """Generations at the token limit, by limit (A.5)."""
    limits = sorted({value for value in counts.limit.tolist() if value == value})  # noqa: PLR0124 - NaN
    rows = []
    for limit in [*limits, None]:
        members = np.isnan(counts.limit) if limit is None else counts.limit == limit
        if members.any():
            one = summary(counts, members)
            rows.append(
                {
                    "max_new_tokens": None if limit is None else int(limit),
                    "runs": len(np.unique(counts.run[members])),
                    "generations": int(counts.numbers["counted"][members].sum()),
                }
                | {name: one[name] for name in ("at_limit", "at_limit_share", "at_limit_without_option")}
            )
    columns = [
        Column("max_new_tokens", "limit of generated tokens; empty where not recorded", "count"),
        Column("runs", "runs of such configurations", "count"),
        Column("generations", "their records with generated_tokens", "count"),
        *(column for column in COLUMNS if column.name.startswith("at_limit")),
    ]
    return Table.of("Limits: generations that reach the token limit", columns, {c.name: [row[c.name] for row in rows] for c in columns})


def _table(title: str, keys: Sequence[Column], rows: Sequence[dict[str, Any]], shown: int = 40) -> Table:
    columns = [*keys, *COLUMNS]
    return Table.of(title, columns, {column.name: [row[column.name] for row in rows] for column in columns}, shown=shown)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
