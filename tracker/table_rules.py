"""Rules of a study file for tables: `[[table]]` (one row per question) and `[[scores]]` (aggregate scores)."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from tracker.rules import (
    Captures,
    Cell,
    Constant,
    Part,
    Pattern,
    ScoreField,
    TableField,
    as_cell,
    field_of,
    is_run_field,
    nearest,
)

Format = Literal["jsonl", "json", "csv", "tsv", "parquet", "xlsx"]
_SAYS_WHETHER = frozenset({"correct", "score"})
_SAYS_WHAT = frozenset({"prediction", "gold"})
_COLUMN_GROUPS = ("benchmark", "metric")


class Layout(Part):
    """Where the rows of a file are."""

    format: Format | None = None
    sheet: str | None = None
    rows: str | None = None
    keys: tuple[str, ...] = ()


class Sidecar(Layout):
    """`[table.sidecar]`: a file that holds more about the questions of a table, such as the gold answers."""

    file: str = Field(min_length=1)
    key: Annotated[tuple[str, ...], BeforeValidator(lambda told: (told,) if isinstance(told, str) else told)] = Field(min_length=1)
    on: Annotated[tuple[str, ...], BeforeValidator(lambda told: (told,) if isinstance(told, str) else told)] = ()
    columns: dict[TableField, Annotated[Cell, BeforeValidator(as_cell)]] = Field(min_length=1)

    @model_validator(mode="after")
    def _no_key_of_its_own(self) -> Sidecar:
        if "question_id" in self.columns:
            message = "columns: question_id comes from the table; key names the sidecar's own columns"
            raise ValueError(message)
        return self


class TableRule(Captures, Layout):
    """`[[table]]`: an ad-hoc table. For `question_id` several columns are joined by '/', elsewhere they are alternatives."""

    files: Pattern
    columns: dict[TableField, Annotated[Cell, BeforeValidator(as_cell)]]
    models: dict[TableField, Pattern] = Field(default_factory=dict)
    sidecar: Sidecar | None = None
    unfold: bool | tuple[str, ...] = False
    answers: Literal["index", "letter", "text"] | None = None
    first_index: int = 0
    regex: ClassVar[str] = "files"

    @property
    def fields(self) -> frozenset[str]:
        """Every field that a row gets from a column, a column of a model, or the sidecar."""
        return frozenset((*self.columns, *self.models, *(self.sidecar.columns if self.sidecar else ())))

    def templates(self) -> tuple[Constant, ...]:
        """Values in which {group} stands for a group."""
        return (*self.constants.values(), *((self.sidecar.file,) if self.sidecar else ()))

    @model_validator(mode="after")
    def _says_enough(self) -> TableRule:
        if "question_id" not in self.columns:
            message = "columns: question_id is missing"
            raise ValueError(message)
        if not _SAYS_WHETHER & self.fields and not self.fields >= _SAYS_WHAT:
            message = "columns: expected correct, score, or both prediction and gold"
            raise ValueError(message)
        for name in self.unfold if isinstance(self.unfold, tuple) else ():
            if name not in self.fields:
                message = f"unfold: {name!r} is no field of columns{nearest(name, self.fields)}"
                raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _each_field_once(self) -> TableRule:
        parts: dict[str, dict[str, Any]] = {
            "columns": self.columns,
            "models": self.models,
            "sidecar.columns": self.sidecar.columns if self.sidecar else {},
        }
        for one, other in (("columns", "models"), ("columns", "sidecar.columns"), ("models", "sidecar.columns")):
            for name in parts[one].keys() & parts[other].keys():
                message = f"{other}: {name!r} is already mapped in {one}"
                raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _columns_of_models(self) -> TableRule:
        groups = {name: frozenset(re.compile(pattern).groupindex) for name, pattern in self.models.items()}
        for name, found in groups.items():
            if not found:
                message = f"models.{name}: expected a named group that tells models apart, such as (?P<model>.+)"
                raise ValueError(message)
            for group in sorted(found):
                _column_group(f"models.{name}", group, ())
            first, expected = next(iter(groups.items()))
            if found != expected:
                message = (
                    f"models.{name}: its groups are {', '.join(sorted(found))}; those of models.{first} are {', '.join(sorted(expected))}"
                )
                raise ValueError(message)
        if "question_id" in self.models:
            message = "models: question_id belongs in columns"
            raise ValueError(message)
        return self


class Wide(Part):
    """Columns that each hold one benchmark, metric or model: by name, or by an expression over their names."""

    names: dict[str, str] = Field(default_factory=dict)
    pattern: Pattern | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """What the names of the columns give."""
        return tuple(re.compile(self.pattern).groupindex) if self.pattern else ()

    @model_validator(mode="after")
    def _some(self) -> Wide:
        if not self.names and not self.pattern:
            message = "expected columns: a list, a table of column = name, or a regular expression"
            raise ValueError(message)
        for group in self.groups:
            _column_group("the expression", group, _COLUMN_GROUPS)
        return self


def _as_wide(told: Any) -> Any:
    if isinstance(told, str):
        return {"pattern": told}
    if isinstance(told, list):
        return {"names": {str(name): str(name) for name in told}}
    return {"names": told} if isinstance(told, dict) else told


def _as_scale(told: Any) -> Any:
    return told if isinstance(told, dict) else {"*": told}


class ScoresRule(Captures, Layout):
    """`[[scores]]`: a table of aggregate scores, such as a leaderboard."""

    files: Pattern
    columns: dict[ScoreField, Annotated[Cell, BeforeValidator(as_cell)]] = Field(default_factory=dict)
    benchmarks: Annotated[Wide, BeforeValidator(_as_wide)] | None = None
    metrics: Annotated[Wide, BeforeValidator(_as_wide)] | None = None
    models: Annotated[Wide, BeforeValidator(_as_wide)] | None = None
    stderr: Pattern | None = None
    metric: str | None = None
    scale: Annotated[dict[str, Annotated[float, Field(gt=0)]], BeforeValidator(_as_scale)] = Field(default_factory=dict)
    regex: ClassVar[str] = "files"

    @property
    def wide(self) -> tuple[str, Wide] | None:
        """What each column holds one of, and which columns; None for a table of one score a row."""
        for field in ("benchmark", "metric", "model"):
            found: Wide | None = getattr(self, f"{field}s")
            if found is not None:
                return field, found
        return None

    def divisor(self, benchmark: str) -> float:
        """By what the values of a benchmark are divided."""
        return self.scale.get(benchmark, self.scale.get("*", 1.0))

    @model_validator(mode="after")
    def _says_enough(self) -> ScoresRule:
        told = [name for name in ("benchmarks", "metrics", "models") if getattr(self, name) is not None]
        if len(told) > 1:
            message = f"{' and '.join(told)}: the columns can hold one of these only"
            raise ValueError(message)
        if not told and "value" not in self.columns:
            message = "expected columns.value (one score a row), or benchmarks, metrics or models (one in each column)"
            raise ValueError(message)
        if told and "value" in self.columns:
            message = f"columns: value and {told[0]} are two ways to say where the scores are"
            raise ValueError(message)
        if self.stderr is not None and (self.wide is None or not self.wide[1].pattern):
            message = "stderr: only beside an expression in benchmarks, metrics or models (else columns.stderr)"
            raise ValueError(message)
        if self.stderr is not None and self.wide is not None and set(re.compile(self.stderr).groupindex) != set(self.wide[1].groups):
            message = f"stderr: its groups must be those of {told[0]}: {', '.join(self.wide[1].groups)}"
            raise ValueError(message)
        if (
            self.metric is None
            and "metric" not in self.columns
            and self.metrics is None
            and "metric" not in (self.wide[1].groups if self.wide else ())
        ):
            message = 'nothing says which metric this is: metric = "accuracy", columns.metric, metrics, or a group'
            raise ValueError(message)
        if self.wide is not None and self.wide[1].pattern and self.wide[0] not in self.wide[1].groups:
            message = f"{told[0]}: the expression needs a group (?P<{self.wide[0]}>...)"
            raise ValueError(message)
        return self


def _column_group(where: str, group: str, also: tuple[str, ...]) -> None:
    name = field_of(group)
    if name not in also and not is_run_field(name):
        message = f"{where}: group {group!r} is no field of a run"
        raise ValueError(message)
