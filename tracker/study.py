"""The study file: how one lab's files map to the schema. docs/study-file.md is its grammar.

Errors name the file and the key, and for an unknown key the nearest known one.
"""

from __future__ import annotations

import os
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from tracker.batch import RunHeader, Settings
from tracker.errors import InputError, UsageError
from tracker.rules import HEADER_FIELDS, RUN_FIELDS, Captures, Cell, ConfigRule, Part, PathRule, nearest
from tracker.table_rules import ScoresRule, Sidecar, TableRule, Wide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic_core import ErrorDetails

    from tracker.batch import Source

STUDY_FILE = "study.toml"
_Rule = TypeVar("_Rule", TableRule, ScoresRule)


class Study(Part):
    """A study file, or none."""

    labels: tuple[Path, ...] = ()
    questions: dict[str, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    model_aliases: dict[str, str] = Field(default_factory=dict)
    benchmark_aliases: dict[str, str] = Field(default_factory=dict)
    path: tuple[PathRule, ...] = ()
    config: tuple[ConfigRule, ...] = ()
    table: tuple[TableRule, ...] = ()
    scores: tuple[ScoresRule, ...] = ()
    file: Path | None = Field(default=None, exclude=True)

    @classmethod
    def empty(cls) -> Study:
        """The study that says nothing."""
        return cls()

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Read a study file."""
        path = Path(path)
        try:
            document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
        except OSError as err:
            message = f"cannot be read: {err.strerror or err}"
            raise UsageError(message, where=str(path)) from err
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
            message = f"not valid TOML: {err}"
            raise UsageError(message, where=str(path)) from err
        if "file" in document:
            message = f"file is no key of a study file{nearest('file', _keys(cls))}"
            raise UsageError(message, where=str(path))
        if (wide := next(_wide_numbers(document), None)) is not None:
            message = f"the whole number {wide} is beyond 64 bits"
            raise UsageError(message, where=str(path), hint="write it as text, in quotes")
        path = path.resolve()
        try:
            study = cls.model_validate(document | {"file": path})
        except ValidationError as err:
            raise _usage_error(path, err) from err
        return study.model_copy(update={"labels": tuple(path.parent / one for one in study.labels)})

    @property
    def root(self) -> Path | None:
        """The folder of the study file."""
        return None if self.file is None else self.file.parent

    @property
    def tables(self) -> tuple[TableRule, ...]:
        """The rules for ad-hoc tables."""
        return self.table

    @cached_property
    def _root_text(self) -> str | None:
        return None if self.root is None else f"{self.root.as_posix().rstrip('/')}/"

    def path_text(self, path: Path | str) -> str:
        """What expressions see of a path: relative to the study's folder where it lies inside, else absolute."""
        text = str(path) if "://" in str(path) else Path(path).absolute().as_posix()
        for one in (text, text if "://" in text else Path(os.path.realpath(path)).as_posix()):  # a link in a circle raises nothing
            if self._root_text is not None and one.startswith(self._root_text):
                return one[len(self._root_text) :]
        return text

    def fields(self, path: Path | str, address: str | None = None) -> dict[str, Any]:
        """Captures and constants of every `[[path]]` rule that a file (or its other name) meets; later rules win."""
        if not self.path:
            return {}
        texts = [self.path_text(one) for one in (path, address) if one is not None]
        given: dict[str, Any] = {}
        for rule in self.path:
            given |= next((found for text in texts if (found := rule.captures(text)) is not None), {})
        return coerce(given, f"{path}: [[path]] of {self.file}")

    def table_rule(self, path: Path | str) -> TableRule | None:
        """The first `[[table]]` rule that names a file."""
        return next(self._matching(self.table, path), None)

    def scores_rule(self, path: Path | str) -> ScoresRule | None:
        """The first `[[scores]]` rule that names a file."""
        return next(self._matching(self.scores, path), None)

    def _matching(self, rules: Sequence[_Rule], path: Path | str) -> Iterator[_Rule]:
        if rules:
            text = self.path_text(path)
            yield from (rule for rule in rules if re.search(rule.files, text))

    def idle_rules(self, paths: Sequence[Path | str]) -> list[str]:
        """The `[[path]]`, `[[table]]` and `[[scores]]` rules that none of some paths meets, as messages call them."""
        told = [(f"[[path]] pattern = '{rule.pattern}'", rule.pattern) for rule in self.path]
        told += [(f"[[table]] files = '{rule.files}'", rule.files) for rule in self.table]
        told += [(f"[[scores]] files = '{rule.files}'", rule.files) for rule in self.scores]
        if not told:
            return []
        texts = [self.path_text(path) for path in paths]
        return [name for name, pattern in told if not any(map(re.compile(pattern).search, texts))]

    def place(self, rule: TableRule | ScoresRule) -> str:
        """What a message calls a rule: its kind, number and file."""
        kind, rules = ("table", self.table) if isinstance(rule, TableRule) else ("scores", self.scores)
        number = next((at for at, one in enumerate(rules, 1) if one is rule), 0)
        return f"[[{kind}]] {number} of {self.file}"

    def apply(self, header: RunHeader, source: Source) -> RunHeader:
        """A header with what the study says of its path, then of its own config."""
        given = self.fields(source.uri, source.address)
        for rule in self.config:
            value = rule.value(header)
            if value is not None:
                given[rule.to] = value
        if not given:
            return header
        return _with(header, coerce(given, f"{source.uri}: study file {self.file}"), source.uri, f"study file {self.file}")

    def effective(self, source: Source) -> dict[str, Any]:
        """What of this study decides how a source is read, as JSON values."""
        rule: TableRule | ScoresRule | None = None
        if source.reader == "table":
            rule = self.table_rule(source.uri)
        elif source.reader == "score_table":
            rule = self.scores_rule(source.uri)
        fields = self.fields(source.uri, source.address)
        benchmark = fields.get("benchmark") or (rule.constants.get("benchmark") if rule else None)
        questions = {name: count for name, count in self.questions.items() if benchmark is None or name == benchmark}
        told = {
            "path": fields,
            "config": [one.model_dump(mode="json") for one in self.config],
            "table": rule.model_dump(mode="json", exclude_defaults=True) if rule else None,
            "captures": rule.captures(self.path_text(source.uri)) if rule else None,
            "questions": questions,
        }
        return {name: value for name, value in told.items() if value}


def find_study(paths: Iterable[str | Path]) -> Path | None:
    """The study file of an ingest: in one of the folders given (or beside a file given), else in the working folder."""
    for one in map(Path, paths):
        candidate = (one if one.is_dir() else one.parent) / STUDY_FILE
        if candidate.is_file():
            return candidate
    here = Path(STUDY_FILE)
    return here if here.is_file() else None


def coerce(given: dict[str, Any], where: str) -> dict[str, Any]:
    """Fields with the types of their columns; InputError names the field."""
    settings = {name: value for name, value in given.items() if name in Settings.model_fields}
    if "kind" in given:
        given = given | {"kind": _KINDS.get(str(given["kind"]).strip().lower(), given["kind"])}
    if "n_expected" in given:
        given = given | {"n_expected": _whole(given["n_expected"], where)}
    try:
        typed = Settings.model_validate({name: _plain(name, value) for name, value in settings.items() if value is not None})
    except ValidationError as err:
        first = err.errors()[0]
        message = f"{first['loc'][0]}: {first['msg'].lower()}, found {first['input']!r}"
        raise InputError(message, where=where) from err
    return {name: value if isinstance(value, str) or name not in HEADER_FIELDS[:-1] else str(value) for name, value in given.items()} | {
        name: getattr(typed, name) for name in settings
    }


_KINDS = {
    "eval": "evaluation",
    "evaluate": "evaluation",
    "test": "evaluation",
    "train": "training",
    "pretrain": "training",
    "finetune": "training",
}
"""Short words for what a run does, as configurations hold them."""


def _whole(value: Any, where: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as err:
        message = f"n_expected: expected a whole number, found {value!r}"
        raise InputError(message, where=where) from err


def _plain(name: str, value: Any) -> Any:
    """Numbers become text for text columns; 448.0 becomes 448 for whole ones."""
    is_whole = "int" in str(Settings.model_fields[name].annotation)
    if isinstance(value, str) and is_whole:
        return value.strip()
    return value if is_whole or isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _with(header: RunHeader, given: dict[str, Any], where: str, rules: str) -> RunHeader:
    plain = {name: value for name, value in given.items() if name in HEADER_FIELDS}
    settings = {name: value for name, value in given.items() if name in Settings.model_fields}
    free = {
        kind: getattr(header, kind) | {name.split(".", 1)[1]: value for name, value in given.items() if name.startswith(f"{kind}.")}
        for kind in ("tags", "settings")
    }
    try:
        return RunHeader.model_validate(
            {name: getattr(header, name) for name in RunHeader.model_fields}
            | plain
            | {"configuration": header.configuration.model_copy(update=settings)}
            | free
        )
    except ValidationError as err:
        first = err.errors()[0]
        message = f"{rules}: {first['loc'][0]}: {first['msg'].lower()}, found {first['input']!r}"
        raise InputError(message, where=where) from err


def _keys(part: type[BaseModel]) -> list[str]:
    own = [name for name in part.model_fields if name not in {"file", "constants"}]
    return [*own, *RUN_FIELDS, "tags", "settings"] if issubclass(part, Captures) else own


_PARTS: dict[str, type[BaseModel]] = {"path": PathRule, "config": ConfigRule, "table": TableRule, "scores": ScoresRule}


def _wide_numbers(value: Any) -> Iterator[int]:
    """Whole numbers that no database column and no digest can hold."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _wide_numbers(one)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield value


def _part_of(section: str, place: Sequence[str]) -> type[BaseModel]:
    """The part of a study file in which a key stands."""
    if section not in _PARTS or len(place) < 3:
        return Study
    if len(place) == 3:
        return _PARTS[section]
    return Sidecar if place[2:-1] == ["sidecar"] else Wide if place[2] in {"benchmarks", "metrics", "models"} else Cell


def _usage_error(path: Path, err: ValidationError) -> UsageError:
    lines = [_explain(one) for one in err.errors()]
    more = f" (and {len(lines) - 1} more: {'; '.join(lines[1:3])})" if len(lines) > 1 else ""
    return UsageError(f"{lines[0]}{more}", where=str(path), hint="docs/study-file.md lists every key")


def _explain(error: ErrorDetails) -> str:
    place = [str(one + 1) if isinstance(one, int) else str(one) for one in error["loc"] if one != "[key]"]
    section = place[0] if place else ""
    shown = (f"[[{section}]] {'.'.join(place[1:])}" if section in _PARTS else ".".join(place)).strip()
    if error["type"] == "extra_forbidden":
        return f"{shown}: unknown key {place[-1]!r}{nearest(place[-1], _keys(_part_of(section, place)))}"
    if error["type"] == "missing":
        return f"{shown}: missing"
    return f"{shown}: {error['msg'].removeprefix('Value error, ')}"
