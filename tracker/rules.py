"""What rules of a study file are made of: fields, captures, constants, and where a field of a table comes from."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tracker.batch import QUESTIONS, RECORDS, RunHeader, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HEADER_FIELDS = ("model", "benchmark", "kind", "external_id", "status", "framework", "framework_version", "system", "n_expected")
CHOICES: dict[str, tuple[str, ...]] = {name: get_args(RunHeader.model_fields[name].annotation) for name in ("kind", "status")}
"""Fields that hold one of a few words."""
RUN_FIELDS = (*HEADER_FIELDS, *Settings.model_fields)
"""What a path, a constant or a run's own config can give; also `tags.NAME` and `settings.NAME`."""
_MAPPED = ("question_id", "losses", "log_likelihoods", "probabilities", "domain", "skill", "run_id", "run_status", "started_at", "ended_at")
TABLE_FIELDS = tuple(
    dict.fromkeys(
        (
            *_MAPPED,
            *(name for name in RECORDS.names if name not in {"question_key", "special"}),
            *(name for name in QUESTIONS.names if name != "key"),
            *RUN_FIELDS,
        )
    )
)
"""What a column of an ad-hoc table can give; also `scores.NAME`, `tags.NAME` and `settings.NAME`."""
SCORE_FIELDS = tuple(
    dict.fromkeys(("metric", "value", "stderr", "n", "step", "tokens", "run_id", "run_status", "started_at", "ended_at", *RUN_FIELDS))
)
"""What a column of a score table can give; also `tags.NAME` and `settings.NAME`."""
FREE = ("tags.", "settings.")


def pattern_of(text: str) -> str:
    """A regular expression, checked."""
    try:
        re.compile(text)
    except re.error as err:
        message = f"not a regular expression: {err}"
        raise ValueError(message) from err
    return text


def _run_field(name: str) -> str:
    return known_name(name, RUN_FIELDS, FREE)


def _table_field(name: str) -> str:
    return known_name(name, TABLE_FIELDS, (*FREE, "scores."))


def _score_field(name: str) -> str:
    return known_name(name, SCORE_FIELDS, FREE)


def known_name(name: str, names: Iterable[str], prefixes: Sequence[str]) -> str:
    """A name that is known or begins with a prefix of free names; ValueError with the nearest one."""
    if name in names or any(name.startswith(prefix) and len(name) > len(prefix) for prefix in prefixes):
        return name
    message = f"{name!r} is no field{nearest(name, names)}"
    raise ValueError(message)


def nearest(name: str, names: Iterable[str]) -> str:
    """How a message goes on that says a name is unknown: the nearest known one, or all."""
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def as_cell(value: Any) -> Any:
    """The short forms of a cell: a column, a list of columns."""
    if isinstance(value, str):
        return {"columns": [value]}
    return {"columns": value} if isinstance(value, list) else value


Pattern = Annotated[str, AfterValidator(pattern_of)]
RunField = Annotated[str, AfterValidator(_run_field)]
TableField = Annotated[str, AfterValidator(_table_field)]
ScoreField = Annotated[str, AfterValidator(_score_field)]
Constant = str | bool | int | float


class Part(BaseModel):
    """A part of a study file: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Captures(Part):
    """A regular expression whose named groups are fields, and constants in which {group} stands for a group.

    In the file a constant is a key beside the rule's own: `input_mode = "fixed"`, `tags.site = "north"`.
    """

    constants: dict[RunField, Constant] = Field(default_factory=dict)
    regex: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _gather_constants(cls, told: Any) -> Any:
        if not isinstance(told, dict):
            return told
        if "constants" in told:
            message = "unknown key 'constants': write a constant as a key of its own, such as benchmark = ..."
            raise ValueError(message)
        own = {name: value for name, value in told.items() if name not in RUN_FIELDS and name not in {"tags", "settings"}}
        constants = {name: value for name, value in told.items() if name in RUN_FIELDS}
        for kind in ("tags", "settings"):
            free = told.get(kind, {})
            constants |= {f"{kind}.{name}": value for name, value in free.items()} if isinstance(free, dict) else {kind: free}
        return own | {"constants": constants}

    @model_validator(mode="after")
    def _constants_are_among_the_choices(self) -> Self:
        for name, words in CHOICES.items():
            value = self.constants.get(name, "")
            if value != "" and value not in words and "{" not in str(value):
                message = f"{name}: expected {' or '.join(words)}, found {value!r}"
                raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _groups_are_known(self) -> Self:
        pattern = re.compile(getattr(self, self.regex))
        used = {name for value in self.templates() if isinstance(value, str) for name in re.findall(r"\{(\w+)\}", value)}
        for name in used - set(pattern.groupindex):
            message = f"{{{name}}} is no group of {self.regex}"
            raise ValueError(message)
        for name in set(pattern.groupindex) - used:
            try:
                _run_field(field_of(name))
            except ValueError as err:
                message = f"{self.regex}: group {err} (or use it in a constant as {{{name}}})"
                raise ValueError(message) from err
        return self

    def templates(self) -> tuple[Constant, ...]:
        """Values in which {group} stands for a group."""
        return tuple(self.constants.values())

    def groups(self, text: str) -> dict[str, str] | None:
        """Groups of the expression in a text, empty where one takes no part; None where it is not found."""
        found = re.search(getattr(self, self.regex), text)
        return None if found is None else {name: value or "" for name, value in found.groupdict().items()}

    def captures(self, text: str) -> dict[str, Any] | None:
        """Fields that a text gives; None where the expression is not found in it."""
        groups = self.groups(text)
        if groups is None:
            return None
        given: dict[str, Any] = {field_of(name): value for name, value in groups.items() if is_run_field(field_of(name))}
        given = {name: value for name, value in given.items() if value != ""}
        filled = {name: fill(value, groups) for name, value in self.constants.items()}
        cleared = {name: None for name, value in self.constants.items() if value == "" and name in Settings.model_fields}
        return given | {name: value for name, value in filled.items() if value != ""} | cleared


class PathRule(Captures):
    """`[[path]]`: what the path of a file says of its runs."""

    pattern: Pattern
    regex: ClassVar[str] = "pattern"


class ConfigRule(Part):
    """`[[config]]`: a value of the run's own config becomes a field."""

    key: str
    to: RunField
    pattern: Pattern | None = None

    def value(self, header: RunHeader) -> Any:
        """The value in a header, or None."""
        held: Any = header.tags if self.key.startswith("tags.") else header.settings
        found = dotted(held, self.key.removeprefix("tags."))
        if found is None or self.pattern is None:
            return found
        met = re.search(self.pattern, str(found))
        return None if met is None else met[1] if met.re.groups else met[0]


class Cell(Part):
    """Where a field of an ad-hoc table comes from: the first of some columns that a row has, or a constant."""

    columns: tuple[str, ...] = ()
    value: Constant | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Cell:
        if bool(self.columns) == (self.value is not None):
            message = "expected a column, a list of columns, or { value = ... }"
            raise ValueError(message)
        return self

    def of(self, row: Mapping[str, Any]) -> Any:
        """The value of the field in a row."""
        if self.value is not None:
            return self.value
        for name in self.columns:
            found = row[name] if name in row else reach(row, name)
            if found is not None:
                return found
        return None


AROUND = "$"
"""Column of a row that holds the objects around it, the nearest first."""


def reach(row: Mapping[str, Any], name: str) -> Any:
    """A value of a row by its dotted name; `$.NAME` is a value beside the rows: of the nearest object around them that has it."""
    if name.startswith("$.") and name not in row:
        return next((found for one in row.get(AROUND) or () if (found := dotted(one, name[2:])) is not None), None)
    return dotted(row, name)


def dotted(held: Any, name: str) -> Any:
    """A value by its dotted name; a key that itself contains dots wins."""
    if not isinstance(held, dict):
        return None
    if name in held:
        return held[name]
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        head = ".".join(parts[:cut])
        if head in held:
            found = dotted(held[head], ".".join(parts[cut:]))
            if found is not None:
                return found
    return None


def field_of(group: str) -> str:
    """The field that a group names; `tags__x` is tags.x (a group name holds no dot)."""
    for prefix in ("tags", "settings"):
        if group.startswith(f"{prefix}__"):
            return f"{prefix}.{group[len(prefix) + 2 :]}"
    return group


def is_run_field(name: str) -> bool:
    """Whether a name is one that a path or a constant can give."""
    return name in RUN_FIELDS or name.startswith(FREE)


def fill(value: Constant, groups: Mapping[str, str]) -> Constant:
    """A constant with the groups that it names in braces."""
    if not isinstance(value, str):
        return value
    return re.sub(r"\{(\w+)\}", lambda met: groups.get(met[1], met[0]), value)
