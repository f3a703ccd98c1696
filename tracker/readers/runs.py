"""What a table says about its runs, gathered while its rows pass by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import RunHeader, Settings
from tracker.readers.columns import moment
from tracker.readers.values import json_text, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

KEYS = ("model", "benchmark", *Settings.model_fields, "run_id")
"""Columns whose values make a run of their own."""
STATUS = ("finished", "partial", "failed")
NOT_KEPT = "columns_not_kept"


def _status(value: object) -> str:
    word = str(value).strip().lower()
    if word not in STATUS:
        raise ValueError(word)
    return word


def _count(value: object) -> int:
    found = whole(value)
    if found is None or found < 0:
        raise ValueError(value)
    return found


FACTS: dict[str, tuple[Callable[[object], Any], str]] = {
    "run_status": (_status, f"one of {', '.join(STATUS)}"),
    "started_at": (moment, "a time (ISO 8601, or seconds since 1970)"),
    "ended_at": (moment, "a time (ISO 8601, or seconds since 1970)"),
    "n_expected": (_count, "a whole number from 0"),
    "status_reason": (text, "text"),
    "framework": (text, "text"),
    "framework_version": (text, "text"),
    "system": (text, "text"),
}
"""Columns about a run that make no run of their own: how to read a value, and what is expected."""


@dataclass(slots=True)
class RunNotes:
    """A run so far."""

    key: tuple[Any, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    varied: set[str] = field(default_factory=set)
    objects: dict[str, dict[str, Any]] = field(default_factory=lambda: {"settings": {}, "tags": {}})

    def learn_fact(self, name: str, told: Sequence[Any]) -> None:
        """Values of a column of FACTS: the earliest start, the latest end, else the last one."""
        for value in dict.fromkeys(told):
            if value is None or value == "" or value != value:  # noqa: PLR0124
                continue
            found, known = FACTS[name][0](value), self.facts.get(name)
            if known is not None and name in {"started_at", "ended_at"}:
                found = (min if name == "started_at" else max)(known, found)
            self.facts[name] = found

    def learn_status(self, told: Sequence[Any]) -> None:
        """`finished` and `partial` in the column `status` are said of the run."""
        words = {str(value).strip().lower() for value in set(told)}
        self.learn_fact("run_status", [word for word in ("finished", "partial") if word in words])

    def learn_object(self, name: str, value: Any) -> None:
        """A column `settings` or `tags`: an object, or its JSON text."""
        if isinstance(value, str):
            try:
                value = orjson.loads(value)
            except ValueError:
                value = {name: value}
        if isinstance(value, dict):
            self.objects[name].update(value)

    def learn_constant(self, name: str, told: Sequence[Any]) -> None:
        """A column without a meaning: kept where it is the same in the whole run."""
        if name in self.varied:
            return
        known = self.constants.setdefault(name, told[0])
        if any(value != known and (value == value or known == known) for value in told):  # noqa: PLR0124
            self.varied.add(name)
            del self.constants[name]

    def header(self, fixed: Mapping[str, Any]) -> RunHeader:
        """The run's header, as far as it is known."""
        values = dict(zip(KEYS, self.key, strict=True))
        said = {name: value for name, value in fixed.items() if name in FACTS} | self.facts
        status = said.pop("run_status", fixed.get("status", "finished"))
        held = {name: _plain(value) for name, value in self.constants.items() if value is not None}
        settings = {name.removeprefix("settings."): value for name, value in held.items() if not name.startswith("tags.")}
        tags = {name.removeprefix("tags."): value for name, value in held.items() if name.startswith("tags.")}
        return RunHeader.model_validate(
            said
            | {
                "model": values["model"],
                "benchmark": values["benchmark"],
                "external_id": values["run_id"],
                "configuration": {name: values[name] for name in Settings.model_fields},
                "status": status,
                "settings": settings
                | self.objects["settings"]
                | ({NOT_KEPT: sorted(name.removeprefix("settings.") for name in self.varied)} if self.varied else {}),
                "tags": tags | self.objects["tags"],
            }
        )


def _plain(value: Any) -> Any:
    """A value that JSON has; Parquet may hold bytes, decimals, times and more."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str | int | float) else orjson.loads(json_text(value))
