"""Metric histories as columns: ordered, numbered, infinities and NaN kept apart, token and FLOP counts beside the values they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import METRIC_POINTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Wholes = np.ndarray[Any, np.dtype[np.int64]]

COMPANIONS = {
    "tokens": ("tokens", "num_tokens", "n_tokens", "total_tokens", "train_tokens", "tokens_seen", "consumed_tokens", "num_input_tokens_seen"),
    "flops": ("flops", "total_flos", "total_flops", "train_flops", "cumulative_flops"),
}  # fmt: skip
"""Metrics that count tokens and FLOP: their value at a step fills the column of every other metric at that step.

A name may stand behind "train/", "training/" or "system/". `tokens/NAME` counts for metrics whose name ends with "/NAME", and goes first.
"""
_PREFIXES = ("train/", "training/", "system/")
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def points_table(
    metrics: Sequence[str] | pa.Array, steps: Sequence[int] | Wholes, times_ms: Sequence[int] | Wholes, values: Sequence[float] | Floats
) -> pa.Table:
    """Points of one run in the columns of METRIC_POINTS, by metric, step, time and value.

    Shape: four columns of one length. `values` holds NaN and infinities as floats; a time of no year up to 9999 is null.
    """
    runs = np.zeros(len(steps), np.int64)
    return points_of_runs(runs, metrics, np.asarray(steps, np.int64), np.asarray(times_ms, np.int64), np.asarray(values, np.float64))[0]


def points_of_runs(
    runs: Wholes, metrics: Sequence[str] | pa.Array, steps: Wholes, times_ms: Wholes, values: Floats
) -> tuple[pa.Table, Wholes]:
    """The same for many runs at once: the table by run first, and each row's run (numbers from 0)."""
    names = metrics if isinstance(metrics, pa.Array | pa.ChunkedArray) else pa.array(list(metrics), pa.string())
    names = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    known = encoded.dictionary.to_pylist()
    rank = np.empty(len(known), np.int64)
    rank[np.array(sorted(range(len(known)), key=known.__getitem__), np.int64)] = np.arange(len(known))
    codes = rank[encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)] if len(known) else np.zeros(0, np.int64)
    height = np.where(np.isnan(values), 0.0, values)  # of points of one time MLflow calls the highest the latest, NaN being 0 to it
    if not _is_sorted(runs, codes, steps, times_ms, height):
        order = np.lexsort((height, times_ms, steps, codes, runs))
        runs, codes, steps, times_ms, values = runs[order], codes[order], steps[order], times_ms[order], values[order]
    known = sorted(known)
    columns: dict[str, Any] = {
        "metric": pa.array(known, pa.string()).take(pa.array(codes)),
        "step": pa.array(steps),
        "seq": pa.array(_numbered(runs, codes, steps), pa.int32()),
        "value": pa.array(values, mask=~np.isfinite(values)),
        "special": _specials(values),
        "logged_at": _times(times_ms),
    }
    for column in COMPANIONS:
        columns[column] = _companions(column, known, runs, codes, steps, values)
    return pa.table([columns[name] for name in METRIC_POINTS.names], schema=METRIC_POINTS), runs


def _is_sorted(*keys: Wholes | Floats) -> bool:
    """Whether rows are in the order of some keys, the first of which counts most."""
    equal = np.ones(max(len(keys[0]) - 1, 0), bool)
    for key in keys:
        low, high = key[:-1], key[1:]
        if (equal & (low > high)).any():
            return False
        equal &= low == high
    return True


def _numbered(*keys: Wholes) -> Wholes:
    """Place of each row among its equals, from 0; equals stand together."""
    count = len(keys[0])
    if not count:
        return np.zeros(0, np.int64)
    first = np.ones(count, bool)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    places = np.arange(count)
    return places - np.maximum.accumulate(np.where(first, places, 0))


def _specials(values: Floats) -> pa.Array:
    """'nan', 'inf', '-inf', and null where a value is finite."""
    if np.isfinite(values).all():
        return pa.nulls(len(values), pa.string())
    kinds = np.where(np.isnan(values), 0, np.where(values > 0, 1, 2))
    return pa.array(["nan", "inf", "-inf"]).take(pa.array(kinds, mask=np.isfinite(values)))


def _times(times_ms: Wholes) -> pa.Array:
    known = (times_ms >= 0) & (times_ms <= LATEST_MS)
    return pa.array(np.where(known, times_ms, 0) * 1000, mask=~known).cast(pa.timestamp("us", tz="UTC"))


def _companions(column: str, known: Sequence[str], runs: Wholes, codes: Wholes, steps: Wholes, values: Floats) -> pa.Array:
    """Per row the last value of the run's counting metric at its step."""
    counting = {code: name for code, name in enumerate(known) if counts(column, name)}
    if not counting:
        return pa.nulls(len(codes), pa.float64())
    filled = np.full(len(codes), np.nan)
    plain = [code for code, name in counting.items() if not _objective(column, name)]
    order = {one: place for place, one in enumerate(COMPANIONS[column])}
    plain.sort(key=lambda code: order.get(_bare(known[code]), len(order)), reverse=True)
    targets = ~np.isin(codes, list(counting))
    for code in plain:
        _fill(filled, targets, codes == code, runs, steps, values)
    for code, name in counting.items():
        objective = _objective(column, name)
        if objective:
            belonging = [other for other, told in enumerate(known) if other not in counting and told.endswith(f"/{objective}")]
            _fill(filled, np.isin(codes, belonging), codes == code, runs, steps, values)
    return pc.if_else(pc.is_nan(pa.array(filled)), pa.scalar(None, pa.float64()), pa.array(filled))


def _fill(
    filled: Floats,
    targets: np.ndarray[Any, np.dtype[np.bool_]],
    source: np.ndarray[Any, np.dtype[np.bool_]],
    runs: Wholes,
    steps: Wholes,
    values: Floats,
) -> None:
    """Write the source's value at (run, step) to the target rows that have one."""
    usable = np.flatnonzero(source & np.isfinite(values) & (values >= 0))
    wanted = np.flatnonzero(targets)
    if not len(usable) or not len(wanted):
        return
    pairs = np.stack([np.concatenate([runs[usable], runs[wanted]]), np.concatenate([steps[usable], steps[wanted]])])
    keys = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    held = np.full(int(keys.max()) + 1, np.nan)
    held[keys[: len(usable)]] = values[usable]  # the last of equals stays
    found = held[keys[len(usable) :]]
    has = ~np.isnan(found)
    filled[wanted[has]] = found[has]


def counts(column: str, name: str) -> bool:
    """Whether a metric counts tokens (or FLOP), by its name."""
    return _bare(name) in COMPANIONS[column] or _objective(column, name) is not None


def _bare(name: str) -> str:
    return next((name[len(prefix) :] for prefix in _PREFIXES if name.startswith(prefix)), name)


def _objective(column: str, name: str) -> str | None:
    """NAME of `tokens/NAME`."""
    first, _, rest = name.partition("/")
    return rest if first == column and rest else None
