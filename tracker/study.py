"""The study file: how one lab's files map to the schema. docs/study-file.md is its grammar.

Errors name the file and the key, and for an unknown key the nearest known one.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from tracker.batch import QUESTIONS, RECORDS, RunHeader, Settings
from tracker.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from tracker.batch import Source

STUDY_FILE = "study.toml"
_HEADER_FIELDS = ("model", "benchmark", "external_id", "status", "framework", "framework_version", "system", "n_expected")
RUN_FIELDS = (*_HEADER_FIELDS, *Settings.model_fields)
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
_FREE = ("tags.", "settings.")


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as err:
        message = f"not a regular expression: {err}"
        raise ValueError(message) from err
    return text


def _run_field(name: str) -> str:
    return _known(name, RUN_FIELDS, _FREE)


def _table_field(name: str) -> str:
    return _known(name, TABLE_FIELDS, (*_FREE, "scores."))


def _known(name: str, names: Iterable[str], prefixes: Sequence[str]) -> str:
    if name in names or any(name.startswith(prefix) and len(name) > len(prefix) for prefix in prefixes):
        return name
    message = f"{name!r} is no field{_nearest(name, names)}"
    raise ValueError(message)


def _nearest(name: str, names: Iterable[str]) -> str:
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def _as_source(value: Any) -> Any:
    if isinstance(value, str):
        return {"columns": [value]}
    return {"columns": value} if isinstance(value, list) else value


Pattern = Annotated[str, AfterValidator(_pattern)]
RunField = Annotated[str, AfterValidator(_run_field)]
TableField = Annotated[str, AfterValidator(_table_field)]
Constant = str | bool | int | float


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Captures(_Part):
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
    def _groups_are_known(self) -> Self:
        pattern = re.compile(getattr(self, self.regex))
        used = {name for value in self.constants.values() if isinstance(value, str) for name in re.findall(r"\{(\w+)\}", value)}
        for name in used - set(pattern.groupindex):
            message = f"{{{name}}} is no group of {self.regex}"
            raise ValueError(message)
        for name in set(pattern.groupindex) - used:
            try:
                _run_field(_field_of(name))
            except ValueError as err:
                message = f"{self.regex}: group {err} (or use it in a constant as {{{name}}})"
                raise ValueError(message) from err
        return self

    def captures(self, text: str) -> dict[str, Any] | None:
        """Fields that a text gives; None where the expression is not found in it."""
        found = re.search(getattr(self, self.regex), text)
        if found is None:
            return None
        groups = {name: value or "" for name, value in found.groupdict().items()}
        given: dict[str, Any] = {_field_of(name): value for name, value in groups.items() if _is_run_field(_field_of(name))}
        given |= {name: _fill(value, groups) for name, value in self.constants.items()}
        return {name: value for name, value in given.items() if value != ""}


class PathRule(_Captures):
    """`[[path]]`: what the path of a file says of its runs."""

    pattern: Pattern
    regex: ClassVar[str] = "pattern"


class ConfigRule(_Part):
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


class Cell(_Part):
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
        return next((found for name in self.columns if (found := dotted(row, name)) is not None), None)


class TableRule(_Captures):
    """`[[table]]`: an ad-hoc table. For `question_id` several columns are joined by '/', elsewhere they are alternatives."""

    files: Pattern
    columns: dict[TableField, Annotated[Cell, BeforeValidator(_as_source)]]
    unfold: bool | tuple[str, ...] = False
    answers: Literal["index", "letter", "text"] | None = None
    first_index: int = 0
    format: Literal["jsonl", "json", "csv", "tsv", "parquet"] | None = None
    regex: ClassVar[str] = "files"

    @model_validator(mode="after")
    def _says_enough(self) -> TableRule:
        if "question_id" not in self.columns:
            message = "columns: question_id is missing"
            raise ValueError(message)
        decided = {"correct", "score"} & set(self.columns) or {"prediction", "gold"} <= set(self.columns)
        if not decided:
            message = "columns: expected correct, score, or both prediction and gold"
            raise ValueError(message)
        for name in self.unfold if isinstance(self.unfold, tuple) else ():
            if name not in self.columns:
                message = f"unfold: {name!r} is no field of columns{_nearest(name, self.columns)}"
                raise ValueError(message)
        return self


class Study(_Part):
    """A study file, or none."""

    labels: tuple[Path, ...] = ()
    questions: dict[str, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    model_aliases: dict[str, str] = Field(default_factory=dict)
    benchmark_aliases: dict[str, str] = Field(default_factory=dict)
    path: tuple[PathRule, ...] = ()
    config: tuple[ConfigRule, ...] = ()
    table: tuple[TableRule, ...] = ()
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
            message = f"file is no key of a study file{_nearest('file', _keys(cls))}"
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
        for one in (text, text if "://" in text else Path(path).resolve().as_posix()):
            if self._root_text is not None and one.startswith(self._root_text):
                return one[len(self._root_text) :]
        return text

    def fields(self, path: Path | str) -> dict[str, Any]:
        """Captures and constants of every `[[path]]` rule that a file meets; later rules win."""
        if not self.path:
            return {}
        text = self.path_text(path)
        given: dict[str, Any] = {}
        for rule in self.path:
            given |= rule.captures(text) or {}
        return coerce(given, f"{path}: [[path]] of {self.file}")

    def table_rule(self, path: Path | str) -> TableRule | None:
        """The first `[[table]]` rule that names a file."""
        if not self.table:
            return None
        text = self.path_text(path)
        return next((rule for rule in self.table if re.search(rule.files, text)), None)

    def apply(self, header: RunHeader, source: Source) -> RunHeader:
        """A header with what the study says of its path, then of its own config."""
        given = self.fields(source.uri)
        for rule in self.config:
            value = rule.value(header)
            if value is not None:
                given[rule.to] = value
        if not given:
            return header
        return _with(header, coerce(given, f"{source.uri}: study file {self.file}"), source.uri)

    def effective(self, source: Source) -> dict[str, Any]:
        """What of this study decides how a source is read, as JSON values."""
        rule = self.table_rule(source.uri) if source.reader == "table" else None
        fields = self.fields(source.uri)
        benchmark = fields.get("benchmark") or (rule.constants.get("benchmark") if rule else None)
        questions = {name: count for name, count in self.questions.items() if benchmark is None or name == benchmark}
        told = {
            "path": fields,
            "config": [one.model_dump(mode="json") for one in self.config],
            "table": rule.model_dump(mode="json") if rule else None,
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


def coerce(given: dict[str, Any], where: str) -> dict[str, Any]:
    """Fields with the types of their columns; InputError names the field."""
    settings = {name: value for name, value in given.items() if name in Settings.model_fields}
    if "n_expected" in given:
        given = given | {"n_expected": _whole(given["n_expected"], where)}
    try:
        typed = Settings.model_validate({name: _plain(name, value) for name, value in settings.items()})
    except ValidationError as err:
        first = err.errors()[0]
        message = f"{first['loc'][0]}: {first['msg'].lower()}, found {first['input']!r}"
        raise InputError(message, where=where) from err
    return {name: value if isinstance(value, str) or name not in _HEADER_FIELDS[:-1] else str(value) for name, value in given.items()} | {
        name: getattr(typed, name) for name in settings
    }


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


def _with(header: RunHeader, given: dict[str, Any], where: str) -> RunHeader:
    plain = {name: value for name, value in given.items() if name in _HEADER_FIELDS}
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
        message = f"study file: {first['loc'][0]}: {first['msg'].lower()}, found {first['input']!r}"
        raise InputError(message, where=where) from err


def _field_of(group: str) -> str:
    """The field that a group names; `tags__x` is tags.x (a group name holds no dot)."""
    for prefix in ("tags", "settings"):
        if group.startswith(f"{prefix}__"):
            return f"{prefix}.{group[len(prefix) + 2 :]}"
    return group


def _is_run_field(name: str) -> bool:
    return name in RUN_FIELDS or name.startswith(_FREE)


def _fill(value: Constant, groups: Mapping[str, str]) -> Constant:
    if not isinstance(value, str):
        return value
    return re.sub(r"\{(\w+)\}", lambda met: groups.get(met[1], met[0]), value)


def _keys(part: type[BaseModel]) -> list[str]:
    own = [name for name in part.model_fields if name not in {"file", "constants"}]
    return [*own, *RUN_FIELDS, "tags", "settings"] if issubclass(part, _Captures) else own


_PARTS: dict[str, type[BaseModel]] = {"path": PathRule, "config": ConfigRule, "table": TableRule}


def _wide_numbers(value: Any) -> Iterator[int]:
    """Whole numbers that no database column and no digest can hold."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _wide_numbers(one)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield value


def _usage_error(path: Path, err: ValidationError) -> UsageError:
    lines = [_explain(one) for one in err.errors()]
    more = f" (and {len(lines) - 1} more: {'; '.join(lines[1:3])})" if len(lines) > 1 else ""
    return UsageError(f"{lines[0]}{more}", where=str(path), hint="docs/study-file.md lists every key")


def _explain(error: ErrorDetails) -> str:
    place = [str(one + 1) if isinstance(one, int) else str(one) for one in error["loc"] if one != "[key]"]
    section = place[0] if place else ""
    shown = (f"[[{section}]] {'.'.join(place[1:])}" if section in _PARTS else ".".join(place)).strip()
    if error["type"] == "extra_forbidden":
        known = _keys(_PARTS[section]) if section in _PARTS and len(place) == 3 else _keys(Cell) if len(place) > 3 else _keys(Study)
        return f"{shown}: unknown key {place[-1]!r}{_nearest(place[-1], known)}"
    if error["type"] == "missing":
        return f"{shown}: missing"
    return f"{shown}: {error['msg'].removeprefix('Value error, ')}"
