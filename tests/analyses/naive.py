"""The ceiling analysis once more: plain loops over the raw answers, written from the paper's definitions. Slow and obvious."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]
Key = tuple[Any, str]


def regime(accuracy: float, cutoff: float = 0.2, easy: float = 0.9) -> str:
    accuracy = round(accuracy, 9)
    return "easy" if accuracy > easy else "ceiling_bound" if accuracy < cutoff else "scaling_bound"


def observations(rows: Iterable[Row]) -> dict[Key, dict[Any, Row]]:
    """(question, series) -> configuration -> means over repetitions."""
    grouped: dict[Key, dict[Any, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["counts"] and not missing(row["credit"]):
            grouped[row["question_id"], row["series"]][row["configuration_id"]].append(row)
    return {key: {configuration: _mean_of(members) for configuration, members in by.items()} for key, by in grouped.items()}


def _mean_of(rows: list[Row]) -> Row:
    def mean(name: str) -> float | None:
        known = [row[name] for row in rows if not missing(row[name])]
        return fmean(known) if known else None

    complete = all(not missing(row["p_gold"]) for row in rows)
    return rows[0] | {"credit": mean("credit"), "p_gold": mean("p_gold"), "visual_tokens": mean("visual_tokens"), "complete": complete}


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in {"<NA>", "None"}


def accuracies(rows: Iterable[Row]) -> dict[Key, float]:
    return {key: fmean(row["credit"] for row in by.values()) for key, by in observations(rows).items()}


def compute(row: Row) -> float | None:
    """u = N R."""
    if missing(row["parameters"]) or missing(row["visual_tokens"]) or row["visual_tokens"] <= 0:
        return None
    return float(row["parameters"] * row["visual_tokens"])


def quartiles(values: list[float]) -> list[int]:
    """1 + floor(4 (m - 1/2)/n) with midrank m, in exact arithmetic."""
    n = len(values)
    result = []
    for value in values:
        below, ties = sum(other < value for other in values), sum(other == value for other in values)
        midrank = below + Fraction(ties + 1, 2)
        result.append(1 + math.floor(4 * (midrank - Fraction(1, 2)) / n))
    return result


def slope(x: list[float], y: list[float]) -> float | None:
    if len(set(x)) < 2:
        return None
    mx, my = fmean(x), fmean(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sum((a - mx) ** 2 for a in x)


def usable(by: dict[Any, Row]) -> list[Row]:
    return [row for row in by.values() if row["input_mode"] != "native" and compute(row) is not None]


def matched(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    """C.3: every series, two backbone sizes, two input sizes, known options, a probability throughout, filled quartiles."""
    all_observations = observations(rows)
    series = {name for _, name in all_observations}
    good = {}
    for key, by in all_observations.items():
        members = usable(by)
        filled = set(quartiles([compute(row) or 0 for row in members]))
        if (
            len({row["parameters"] for row in members}) >= 2
            and len({row["input_size"] for row in members}) >= 2
            and {1, 3, 4} <= filled
            and all(row["complete"] for row in members)
            and not missing(members[0]["n_options"])
            and members[0]["n_options"] >= 2
        ):
            good[key] = members
    return {key: members for key, members in good.items() if all((key[0], name) in good for name in series)}


def levels(members: list[Row], measure: str) -> tuple[list[float], float]:
    """Mean in each compute quartile, and the slope on log2 u."""
    values = [measured(row, measure) for row in members]
    u = [compute(row) or 0 for row in members]
    which = quartiles(u)
    means = [fmean([v for v, q in zip(values, which, strict=True) if q == quartile] or [math.nan]) for quartile in (1, 2, 3, 4)]
    return means, slope([math.log2(value) for value in u], values) or 0.0


def measured(row: Row, measure: str) -> float:
    value = row["credit"] if measure[0] == "a" else row["p_gold"]
    chance = 1 / row["n_options"]
    return float((value - chance) / (1 - chance) if measure.endswith("*") else value)


def criteria(members: list[Row], measure: str, tau: float, delta: float = 0.05, eta: float = 0.01) -> dict[str, bool]:
    """Eq. 18."""
    z, b = levels(members, measure)
    low = round(z[3], 9) < tau
    found = {
        "H": low,
        "E": low and abs(round(z[3] - z[0], 9)) <= delta,
        "P": low and abs(round(z[3] - z[2], 9)) <= delta,
        "B": low and abs(round(b, 9)) <= eta,
    }
    return found | {"J": found["E"] and found["P"] and found["B"]}


def halves(rows: Iterable[Row], fingerprints: dict[Any, str], seed: int) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """(series, regime) -> accuracy and slope, mean of both directions."""
    collected: dict[tuple[int, str, str], list[tuple[float, float | None]]] = defaultdict(list)
    for (_, series), by in observations(rows).items():
        members = [row for row in by.values() if row["input_mode"] != "native"]
        members.sort(key=lambda row: _hash(row, fingerprints, seed))
        for direction in (0, 1):
            defining, held_out = members[direction::2], members[1 - direction :: 2]
            if not defining or not held_out:
                continue
            measured_slope = _slope_of([row for row in held_out if compute(row) is not None])
            accuracy = fmean(row["credit"] for row in held_out)
            collected[direction, series, regime(fmean(row["credit"] for row in defining))].append((accuracy, measured_slope))
    result = {}
    for series, name in {(series, name) for _, series, name in collected}:
        both = [collected.get((direction, series, name), []) for direction in (0, 1)]
        result[series, name] = (
            _mean2([[a for a, _ in part] for part in both]),
            _mean2([[s for _, s in part if s is not None] for part in both]),
        )
    return result


def _slope_of(members: list[Row]) -> float | None:
    return slope([math.log2(compute(row) or 0) for row in members], [row["credit"] for row in members])


def _mean2(parts: list[list[float]]) -> float | None:
    return fmean(fmean(part) for part in parts) if all(parts) else None


def _hash(row: Row, fingerprints: dict[Any, str], seed: int) -> int:
    z = _md5(str(seed), row["benchmark"], row["question_key"]) ^ _md5(row["model"], fingerprints[row["configuration_id"]])
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def _md5(*fields: str) -> int:
    return int.from_bytes(hashlib.md5("\x1f".join(fields).encode(), usedforsecurity=False).digest()[:8], "little")


def halves_of_quartiles(members: list[Row], fingerprints: dict[Any, str], seed: int) -> list[list[tuple[Row, int]]]:
    """Two halves of (row, quartile): the rows of each quartile, by hash, dealt in turn."""
    which = quartiles([compute(row) or 0 for row in members])
    found: list[list[tuple[Row, int]]] = [[], []]
    for quartile in (1, 2, 3, 4):
        rows = [row for row, q in zip(members, which, strict=True) if q == quartile]
        rows.sort(key=lambda row: _hash(row, fingerprints, seed))
        for place, row in enumerate(rows):
            found[place % 2].append((row, quartile))
    return found


def criteria_of_part(
    part: list[tuple[Row, int]], measure: str, tau: float, delta: float = 0.05, eta: float = 0.01
) -> dict[str, bool] | None:
    """Eq. 18 on some rows with quartiles that are given; None where quartile 1, 3 or 4 is empty or compute does not vary."""
    values: dict[int, list[float]] = defaultdict(list)
    for row, quartile in part:
        values[quartile].append(measured(row, measure))
    b = slope([math.log2(compute(row) or 0) for row, _ in part], [measured(row, measure) for row, _ in part])
    if not {1, 3, 4} <= set(values) or b is None:
        return None
    z = {quartile: fmean(each) for quartile, each in values.items()}
    low = round(z[4], 9) < tau
    joint = low and abs(round(z[4] - z[1], 9)) <= delta and abs(round(z[4] - z[3], 9)) <= delta and abs(round(b, 9)) <= eta
    return {"H": low, "J": joint}
