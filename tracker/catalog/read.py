"""From TOML to a Catalog. Every number is checked here, every reference resolved, every count computed."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tracker.catalog import count, vision
from tracker.catalog.fields import Fields
from tracker.catalog.spec import (
    FRONTEND_KINDS,
    STAGES,
    BackboneSpec,
    BenchmarkSpec,
    Catalog,
    EncoderSpec,
    FamilySpec,
    FrontendSpec,
    ModelSpec,
    SeriesSpec,
)
from tracker.catalog.spellings import check_aliases, with_implied
from tracker.catalog.write import given
from tracker.errors import InputError, SourceFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DATA = Path(__file__).parent / "data"
"""The shipped catalog: TOML files that are read as one."""

_TABLES = ("families", "frontends", "encoders", "series", "backbones", "models", "benchmarks")

Spec = TypeVar("Spec")


@cache
def load() -> Catalog:
    """The shipped catalog."""
    document: dict[str, Any] = {}
    for path in sorted(DATA.glob("*.toml")):
        document.update(_parse(path))
    return _build(document, str(DATA), Catalog())


def read(path: str | Path, known: Catalog | None = None) -> Catalog:
    """The catalog of a user's file; it may refer to what it describes itself and to what is `known` (default: shipped).

    An entry under a known name changes the keys that it gives and keeps the others, but for aliases: those are the file's own.
    """
    return _build(_parse(Path(path)), str(path), load() if known is None else known)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as err:
        raise SourceFormatError(str(path), "", "valid TOML", str(err), hint="the place is in the message") from err
    except UnicodeDecodeError as err:
        raise SourceFormatError(str(path), f"byte {err.start}", "UTF-8 text", err.object[err.start : err.start + 1]) from err
    except OSError as err:
        message = f"cannot be read: {err.strerror}"
        raise InputError(message, where=str(path)) from err


def _build(document: Mapping[str, Any], file: str, known: Catalog) -> Catalog:
    """Check one document; errors name the file and the key."""
    reader = _Reader(file, _over_known(document, known), known)
    families = reader.specs("families", _family)
    frontends = reader.specs("frontends", _frontend)
    encoders = reader.specs("encoders", _encoder)
    backbones = reader.backbones()
    reader.top.done()
    frontend_names = {*frontends, *known.frontends}
    series = reader.specs("series", lambda name, fields: _series(name, fields, {*families, *known.families}, frontend_names))
    series_names = {*series, *known.series}
    parts = _Parts(series_names, frontend_names, {**known.backbones, **backbones}, {**known.encoders, **encoders})
    models = reader.specs("models", lambda name, fields: _model(name, fields, parts))
    own = {m.series: SeriesSpec(m.series) for m in models.values() if m.series not in series_names}
    benchmarks = reader.specs("benchmarks", _benchmark)
    check_aliases(file, "backbones", backbones)
    check_aliases(file, "models", models)
    check_aliases(file, "benchmarks", benchmarks)
    return Catalog(
        families,
        frontends,
        encoders,
        {**series, **own},
        with_implied(backbones, known.backbone),
        with_implied(models, known.model),
        with_implied(benchmarks, known.benchmark),
    )


_REPLACES = {
    "like": ("architecture", "source"),
    "architecture": ("architecture", "source"),
    "parameters": ("architecture", "source"),
    "vision_parameters": ("encoder",),
}
"""What a given key makes meaningless of what was known."""


def _over_known(document: Mapping[str, Any], known: Catalog) -> dict[str, Any]:
    """Entries under known names completed with what is known of them."""
    completed = dict(document)
    for table in _TABLES:
        entries = document.get(table)
        if isinstance(entries, dict):
            specs: Mapping[str, Any] = getattr(known, table)
            completed[table] = {name: _completed(entry, specs.get(name)) for name, entry in entries.items()}
    return completed


def _completed(entry: Any, spec: Any) -> Any:
    if spec is None or not isinstance(entry, dict):
        return entry
    replaces = {} if isinstance(spec, FrontendSpec) else _REPLACES
    dropped = {"aliases", *(old for key in entry for old in replaces.get(key, ()))}
    return {**{key: value for key, value in given(spec).items() if key not in dropped}, **entry}


class _Parts:
    """What a model may refer to."""

    def __init__(
        self, series: set[str], frontends: set[str], backbones: Mapping[str, BackboneSpec], encoders: Mapping[str, EncoderSpec]
    ) -> None:
        self.series, self.frontends, self.backbones, self.encoders = series, frontends, backbones, encoders


class _Reader:
    """One document, table by table."""

    def __init__(self, file: str, document: Mapping[str, Any], known: Catalog) -> None:
        self.file, self.known = file, known
        self.top = Fields(file, "", document)
        self._tables = {table: self.top.scoped(table) for table in _TABLES}

    def specs(self, table: str, make: Callable[[str, Fields], Spec]) -> dict[str, Spec]:
        """Make a spec of every entry of a table."""
        made: dict[str, Spec] = {}
        for name, fields in self._tables[table].items():
            made[name] = make(name, fields)
            fields.done()
        return made

    def backbones(self) -> dict[str, BackboneSpec]:
        """Backbones; `like` takes the architecture of another one, in any order."""
        raw = self._tables["backbones"]
        made: dict[str, BackboneSpec] = {}

        def make(name: str, waiting: tuple[str, ...]) -> BackboneSpec:
            if name not in made:
                made[name] = _backbone(name, raw[name], lambda other: base(name, other, waiting))
                raw[name].done()
            return made[name]

        def base(name: str, other: str, waiting: tuple[str, ...]) -> Mapping[str, Any]:
            if other in (name, *waiting):
                raw[name].refuse("like", "a backbone that is not made from this one", other)
            spec = make(other, (*waiting, name)) if other in raw else self.known.backbones.get(other)
            if spec is None or spec.architecture is None:
                raw[name].refuse("like", "a backbone with an architecture", other, hint="describe it in this file or name a known one")
            return spec.architecture

        for name in raw:
            make(name, ())
        return {name: made[name] for name in raw}


def _family(name: str, fields: Fields) -> FamilySpec:
    del fields
    return FamilySpec(name)


def _frontend(name: str, fields: Fields) -> FrontendSpec:
    kind = fields.choice("kind", FRONTEND_KINDS)
    if kind is None:
        fields.refuse("kind", f"one of {', '.join(FRONTEND_KINDS)}", None)
    return FrontendSpec(name, kind, fields.scalars("parameters"), fields.text("source"))


def _encoder(name: str, fields: Fields) -> EncoderSpec:
    inner = fields.inner("architecture")
    if inner is None:
        fields.refuse("architecture", "a table of numbers", None)
    return EncoderSpec(name, _architecture(inner, {k: (v.numbers, ()) for k, v in vision.KINDS.items()}, {}), fields.text("source"))


def _series(name: str, fields: Fields, families: set[str], frontends: set[str]) -> SeriesSpec:
    return SeriesSpec(name, _reference(fields, "family", families, "families"), _reference(fields, "frontend", frontends, "frontends"))


def _backbone(name: str, fields: Fields, base: Callable[[str], Mapping[str, Any]]) -> BackboneSpec:
    like, inner = fields.text("like"), fields.inner("architecture")
    family, stage, source = fields.text("family"), fields.choice("stage", STAGES), fields.text("source")
    stated, active = fields.whole("parameters"), fields.whole("active_parameters")
    architecture = None
    if inner is not None or like is not None:
        start = base(like) if like is not None else {}
        inner = inner or Fields(fields.file, f"{fields.place}.architecture", {})
        architecture = _architecture(inner, {k: (v.numbers, v.optional) for k, v in count.KINDS.items()}, start)
        counted = count.count(architecture)
        if counted.total >= 2**63:
            inner.refuse("kind", "an architecture of fewer than 2**63 parameters", counted.total)
        for key, value, truth in (("parameters", stated, counted.total), ("active_parameters", active, counted.active)):
            if value is not None and value != truth:
                fields.refuse(key, f"{truth} as the architecture gives", value, hint="leave it out: it is computed")
        stated, active = counted
    elif stated is not None and source is None:
        fields.refuse("source", "where the stated number of parameters comes from", None)
    elif active is not None and (stated is None or active > stated):
        fields.refuse("active_parameters", "at most `parameters`", active)
    return BackboneSpec(name, family, stage, architecture, source, stated, active, _aliases(name, fields))


def _architecture(fields: Fields, kinds: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]], start: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of a known kind, over those of `start`; all that the kind needs, nothing else."""
    kind = fields.choice("kind", kinds) or start.get("kind")
    if kind is None:
        fields.refuse("kind", f"one of {', '.join(kinds)}", None)
    numbers: dict[str, Any] = {"kind": kind}
    needed, optional = kinds[kind]
    for key in (*needed, *optional):
        value = fields.flag(key) if key == "tied" else fields.whole(key)
        value = start.get(key) if value is None else value
        if value is not None:
            numbers[key] = value
        elif key in needed:
            fields.refuse(key, "true or false" if key == "tied" else "a positive whole number", None, hint=f"{kind} is counted from it")
    fields.done()
    for more, fewer in (("experts", "experts_per_token"), ("heads", "kv_heads")):
        if numbers.get(fewer, 1) > numbers.get(more, numbers.get(fewer, 1)):
            fields.refuse(fewer, f"at most {more} = {numbers[more]}", numbers[fewer])
    return numbers


def _model(name: str, fields: Fields, parts: _Parts) -> ModelSpec:
    series = _reference(fields, "series", parts.series, "series") or name
    backbone = _reference(fields, "backbone", parts.backbones, "backbones")
    frontend = _reference(fields, "frontend", parts.frontends, "frontends")
    encoder = _reference(fields, "encoder", parts.encoders, "encoders")
    stated = fields.whole("vision_parameters")
    if encoder is not None:
        architecture = parts.backbones[backbone].architecture if backbone else None
        if architecture is None:
            fields.refuse("encoder", "a backbone with an architecture beside it", encoder, hint="or state vision_parameters instead")
        counted = vision.count(parts.encoders[encoder].architecture, architecture["width"])
        if stated not in {None, counted}:
            fields.refuse("vision_parameters", f"{counted} as the encoder gives", stated, hint="leave it out: it is computed")
        stated = counted
    return ModelSpec(name, series, backbone, frontend, encoder, stated, _aliases(name, fields))


def _benchmark(name: str, fields: Fields) -> BenchmarkSpec:
    return BenchmarkSpec(
        name,
        suite=fields.text("suite"),
        split=fields.text("split"),
        modality=fields.text("modality"),
        metric=fields.text("metric"),
        n_questions=fields.whole("n_questions"),
        n_rows=fields.whole("n_rows"),
        image_width=fields.whole("image_width"),
        image_height=fields.whole("image_height"),
        source=fields.text("source"),
        tasks=fields.text_table("tasks"),
        aliases=_aliases(name, fields),
    )


def _aliases(name: str, fields: Fields) -> tuple[str, ...]:
    return tuple(alias for alias in dict.fromkeys(fields.texts("aliases")) if alias != name)


def _reference(fields: Fields, key: str, names: Any, table: str) -> str | None:
    """A name that some table describes."""
    value = fields.text(key)
    if value is not None and value not in names:
        fields.refuse(key, f"a name from {table}", value, hint=f'describe it in a table [{table}."{value}"] or name a known one')
    return value
