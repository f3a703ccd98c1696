"""What the names of a call mean: a model, a model at chosen settings, or one run; and which settings sides have in common."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.answers import objects
from analyses.cohort import select, statement
from analyses.grouping import floats
from tracker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.session import StarSession

SETTINGS = (
    "input_mode", "input_size", "max_tiles", "pixel_cap", "source_quality", "vision_branches", "language_branches", "few_shot", "precision",
    "max_new_tokens", "prompt", "variant",
)  # fmt: skip
RUN = "run:"
NONE = "null"
EACH = "@*"
"""What follows a model whose configurations are each a side."""
SHOWN = 30
FEW_SHOWN = 5
LONG = 40
"""Characters of a setting's value in a headline."""
_NEXT = re.compile(rf",(?=\s*(?:{'|'.join(SETTINGS)})\s*=)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """The configurations of a cohort by (series, parameters, model, input size, fingerprint); no database id decides the order."""

    ids: npt.NDArray[np.int64]
    model: list[str]
    fingerprint: list[str]
    settings: list[dict[str, str | None]]

    def models(self) -> list[str]:
        """Models in order, each once."""
        return list(dict.fromkeys(self.model))

    def of(self, model: str) -> list[int]:
        """Positions of a model's configurations."""
        return [place for place, name in enumerate(self.model) if name == model]

    def varying(self, places: Sequence[int]) -> list[str]:
        """The settings in which some configurations differ."""
        return [name for name in SETTINGS if len({self.settings[place][name] for place in places}) > 1]

    def by_settings(self, places: Sequence[int], names: Sequence[str]) -> dict[str, list[int]]:
        """Some configurations by some of their settings, in the settings' order."""
        by: dict[str, list[int]] = {}
        for place in sorted(places, key=lambda place: [natural(self.settings[place][name]) for name in names]):
            by.setdefault(spelled({name: self.settings[place][name] for name in names}), []).append(place)
        return by

    def described(self, places: Sequence[int], among: Sequence[int] | None = None, shown: int = SHOWN) -> str:
        """Some configurations by the settings in which they (or those that they are among) differ, for a message."""
        texts = list(self.by_settings(places, self.varying(places if among is None else among)))
        more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
        return "; ".join(text or "one without other settings" for text in texts[:shown]) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one name of the call means."""

    name: str
    configurations: tuple[int, ...]
    """Positions in Configurations."""
    run: int | None = None
    """Only the answers of this run."""


def load_configurations(session: StarSession) -> Configurations:
    """The configurations of the materialised cohort."""
    columns = select(session.connection, statement("compare_configurations"), where="cohort")
    text = {name: objects(columns[name]) for name in ("model", "series", "fingerprint", *SETTINGS)}
    size = np.array([_number(value) for value in text["input_size"].tolist()])
    keys = [np.array([str(value) for value in text[name].tolist()]) for name in ("fingerprint", "model", "series")]
    parameters = np.nan_to_num(floats(columns["parameters"]), nan=-1)
    order = np.lexsort((keys[0], size, keys[1], parameters, keys[2])).tolist()
    return Configurations(
        ids=np.ma.getdata(columns["configuration_id"])[order],
        model=[str(text["model"][row]) for row in order],
        fingerprint=[str(text["fingerprint"][row]) for row in order],
        settings=[{name: _text(text[name][row]) for name in SETTINGS} for row in order],
    )


def find_sides(session: StarSession, names: Sequence[str], there: Configurations, runs: dict[int, int]) -> list[Side]:
    """The sides that the names mean (none: every model); `runs` maps runs of the cohort to positions of their configurations.

    Raises UsageError for a name that means nothing, for settings that no configuration has, and for fewer than two sides.
    """
    if not names:
        sides = [Side(name=model, configurations=tuple(there.of(model))) for model in there.models()]
    else:
        aliases = select(session.connection, statement("compare_aliases"), where="models")
        spellings = dict(zip(aliases["alias"].tolist(), aliases["name"].tolist(), strict=True))
        sides = [side for name in names for side in _sides(name.strip(), there, runs, spellings)]
    if len(sides) < 2:
        message = f"only {sides[0].name} is here; a comparison needs two"
        raise UsageError(
            message,
            hint="name two or more models or configurations, none for all models, or MODEL@* for every configuration of one: "
            + _listed(there.models()),
        )
    twice = [name for name in (side.name for side in sides) if [side.name for side in sides].count(name) > 1]
    if twice:
        message = f"{twice[0]} is named twice"
        raise UsageError(message, hint="MODEL@SETTING=VALUE chooses among the configurations of a model")
    return sides


def _sides(name: str, there: Configurations, runs: dict[int, int], spellings: dict[str, str]) -> list[Side]:
    """One side, or every configuration of `MODEL@*`; those that differ in no setting stay together."""
    model = _model(name.removesuffix(EACH), there, spellings) if name.endswith(EACH) else None
    if model is None:
        return [_side(name, there, runs, spellings)]
    places = there.of(model)
    by = there.by_settings(places, there.varying(places))
    return [Side(name=f"{model}@{text}" if text else model, configurations=tuple(some)) for text, some in by.items()]


def _side(name: str, there: Configurations, runs: dict[int, int], spellings: dict[str, str]) -> Side:
    if name.startswith(RUN):
        return _run(name, runs)
    model = _model(name, there, spellings)
    if model is not None:
        return Side(name=model, configurations=tuple(there.of(model)))
    head, at, tail = name.rpartition("@")
    model = _model(head.strip(), there, spellings) if at else None
    if model is None:
        spelled_so = head.strip() if at and "=" in tail else name
        near = difflib.get_close_matches(spelled_so, [*there.models(), *spellings], n=3, cutoff=0.6)
        close = list(dict.fromkeys(spellings.get(one, one) for one in near if spellings.get(one, one) in there.models()))
        message = f"no model called {spelled_so!r} has a scored answer in the cohort"
        raise UsageError(
            message, where=name, hint=f"did you mean {' or '.join(close)}?" if close else "there are: " + _listed(there.models())
        )
    wanted = _wanted(tail, name)
    chosen = [place for place in there.of(model) if all(_same(there.settings[place][key], value) for key, value in wanted.items())]
    if not chosen:
        message = f"{model} has no configuration with {spelled(wanted)}"
        raise UsageError(message, where=name, hint="it has: " + there.described(there.of(model)))
    return Side(name=f"{model}@{spelled(wanted)}", configurations=tuple(chosen))


def _run(name: str, runs: dict[int, int]) -> Side:
    number = name.removeprefix(RUN)
    if not number.isdecimal() or int(number) not in runs:
        message = f"there is no {name} with a scored answer in the cohort"
        raise UsageError(message, where=name, hint="trackr runs list shows the numbers of runs")
    return Side(name=f"{RUN}{int(number)}", configurations=(runs[int(number)],), run=int(number))


def _model(name: str, there: Configurations, spellings: dict[str, str]) -> str | None:
    """The model that a name, an alias, or either in other case means; None where it means none or several."""
    models = there.models()
    if name in models:
        return name
    if spellings.get(name) in models:
        return spellings[name]
    lower = {model for model in models if model.lower() == name.lower()}
    lower |= {model for alias, model in spellings.items() if alias.lower() == name.lower() and model in models}
    return next(iter(lower)) if len(lower) == 1 else None


def _wanted(text: str, name: str) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {}
    for part in _NEXT.split(text):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in SETTINGS:
            message = f"expected SETTING=VALUE, found {part.strip()!r}"
            raise UsageError(message, where=name, hint="settings are: " + ", ".join(SETTINGS))
        wanted[key] = None if value in {"", NONE} else value
    return wanted


def spelled(settings: dict[str, str | None]) -> str:
    """Settings as a name of the call spells them."""
    return ",".join(f"{name}={NONE if value is None else value}" for name, value in settings.items())


def _same(value: str | None, wanted: str | None) -> bool:
    return value == wanted or (value is not None and wanted is not None and value.lower() == wanted.lower())


def axes_of(sides: Sequence[Side], there: Configurations) -> tuple[str, ...]:
    """The settings that must be the same for answers to be compared: those that take more than one value within some side."""
    return tuple(
        name for name in SETTINGS if any(len({there.settings[place][name] for place in side.configurations}) > 1 for side in sides)
    )


def differing(sides: Sequence[Side], there: Configurations, axes: Sequence[str]) -> list[str]:
    """Warnings of settings that are fixed within every side and differ between sides."""
    warnings = []
    for name, values in _fixed(sides, there, axes).items():
        by: dict[str | None, list[str]] = {}
        for side, value in zip(sides, values, strict=True):
            by.setdefault(value, []).append(side.name)
        if len(by) > 1:
            parts = [f"{NONE if value is None else value} ({_listed(names, 3)})" for value, names in by.items()]
            warnings.append(f"{name} differs between sides: {_listed(parts, FEW_SHOWN)}")
    return warnings


def fixed(sides: Sequence[Side], there: Configurations, axes: Sequence[str]) -> str | None:
    """The settings that do not vary within any side, one value where all sides have it, else those of the sides in order."""
    parts = []
    for name, values in _fixed(sides, there, axes).items():
        distinct = [NONE if value is None else _short(value) for value in dict.fromkeys(values)]
        if distinct != [NONE]:
            parts.append(f"{name}={' | '.join(distinct[:FEW_SHOWN])}{' | ...' if len(distinct) > FEW_SHOWN else ''}")
    return ", ".join(parts) or None


def _fixed(sides: Sequence[Side], there: Configurations, axes: Sequence[str]) -> dict[str, list[str | None]]:
    return {name: [there.settings[side.configurations[0]][name] for side in sides] for name in SETTINGS if name not in axes}


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= LONG else line[: LONG - 3] + "..."


def _listed(names: Sequence[str], shown: int = SHOWN) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: str | None) -> float:
    return -1.0 if value is None else float(value)


def natural(value: str | None) -> tuple[int, float, str]:
    """Order of settings: none, numbers by size, words by letter."""
    if value is None:
        return 0, 0.0, ""
    return (1, float(value), "") if value.replace(".", "", 1).isdecimal() else (2, 0.0, value)
