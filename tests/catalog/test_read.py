"""Catalogs of users: what they may describe, and what is refused with file and key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker.catalog import (
    BackboneSpec,
    BenchmarkSpec,
    Catalog,
    FamilySpec,
    FrontendSpec,
    ModelSpec,
    SeriesSpec,
    count,
    dump,
    load,
    read,
)
from tracker.errors import InputError, SourceFormatError

if TYPE_CHECKING:
    from pathlib import Path

OWN = """
[families.OwnVL]

[frontends."own native"]
kind = "native"
parameters = { factor = 28, min_pixels = 3136, max_pixels = 1003520 }

[series.OwnVL-1]
family = "OwnVL"
frontend = "own native"

[backbones.Own-7B]
like = "Qwen2.5-7B"
architecture = { vocabulary = 152100 }
source = "our config.json"

[backbones.Own-secret]
parameters = 1234567890
source = "stated by its maker"

[models.OwnVL-1-7B]
series = "OwnVL-1"
backbone = "Own-7B"
vision_parameters = 400000000
aliases = ["lab/OwnVL-1-7B-Chat"]

[models.Single]
backbone = "Own-secret"

[benchmarks.OwnBench]
suite = "Own"
n_questions = 10
aliases = ["own_bench"]

[benchmarks.OwnBench.tasks]
"any category" = "reasoning"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own.toml"


def _read(file: Path, text: str, known: Catalog | None = None) -> Catalog:
    file.write_text(text, encoding="utf-8")
    return read(file, known)


def test_a_lab_describes_what_it_has(file: Path) -> None:
    catalog = _read(file, OWN)
    assert catalog.backbones["Own-7B"].parameters == 7_615_616_512 + 2 * 3584 * (152100 - 152064)
    assert catalog.backbones["Own-secret"].parameters == 1_234_567_890
    assert catalog.models["OwnVL-1-7B"].aliases == ("lab/OwnVL-1-7B-Chat", "OwnVL-1-7B-Chat", "lab__OwnVL-1-7B-Chat")
    assert catalog.model("LAB/ownvl-1-7b-chat") == catalog.models["OwnVL-1-7B"]
    benchmark = catalog.benchmark("own_bench")
    assert benchmark is not None
    assert benchmark.tasks == {"any category": "reasoning"}


def test_a_model_without_a_series_has_one_of_its_own(file: Path) -> None:
    catalog = _read(file, OWN)
    assert catalog.models["Single"].series == "Single"
    assert catalog.series["Single"] == SeriesSpec("Single")


def test_a_file_may_refer_to_what_is_known(file: Path) -> None:
    catalog = _read(file, '[models.Tuned]\nseries = "InternVL3"\nbackbone = "Qwen3-8B"\nencoder = "InternViT-300M"\n')
    assert catalog.models["Tuned"].vision_parameters == load().models["InternVL3.5-8B"].vision_parameters


def test_a_fine_tune_does_not_take_the_bare_name_of_the_original(file: Path) -> None:
    """`lab/InternVL3-8B` implies `lab__InternVL3-8B`, but never `InternVL3-8B`, which means something else."""
    catalog = _read(file, '[models.Tuned]\nbackbone = "Qwen2.5-7B"\naliases = ["lab/InternVL3-8B"]\n')
    assert catalog.models["Tuned"].aliases == ("lab/InternVL3-8B", "lab__InternVL3-8B")


def test_a_bare_name_that_two_aliases_imply_is_nobodys(file: Path) -> None:
    catalog = _read(file, '[models.A]\naliases = ["a/m"]\n[models.B]\naliases = ["b/m"]\n')
    assert catalog.model("m") is None
    assert catalog.models["A"].aliases == ("a/m", "a__m")


def test_spellings_that_differ_in_case_only_and_mean_two_models_mean_neither_when_folded() -> None:
    catalog = Catalog(models={"m-A": ModelSpec("m-A", "s"), "M-a": ModelSpec("M-a", "s")})
    assert catalog.model("m-A") == catalog.models["m-A"]
    assert catalog.model("M-A") is None


def test_an_entry_under_a_known_name_keeps_what_it_does_not_give(file: Path) -> None:
    catalog = _read(file, '[benchmarks.TreeBench]\naliases = ["our_tree"]\n[models.InternVL3-8B]\naliases = ["iv3"]\n')
    assert catalog.benchmarks["TreeBench"] == replace(load().benchmarks["TreeBench"], aliases=("our_tree",))
    assert catalog.models["InternVL3-8B"] == replace(load().models["InternVL3-8B"], aliases=("iv3",))


def test_a_known_entry_is_described_anew(file: Path) -> None:
    text = """
    [backbones.Qwen3-8B]
    parameters = 8000000001
    source = "pruned"
    [models.InternVL3-8B]
    vision_parameters = 5
    [models.InternVL3-2B]
    encoder = "InternViT-6B"
    [frontends."InternVL tiling"]
    parameters = { tile = 448, max_tiles = 24 }
    """
    catalog = _read(file, text)
    assert (catalog.backbones["Qwen3-8B"].parameters, catalog.backbones["Qwen3-8B"].family) == (8_000_000_001, "Qwen3")
    assert catalog.models["InternVL3-8B"].vision_parameters == 5
    assert (catalog.models["InternVL3-2B"].vision_parameters or 0) > 5_000_000_000
    assert catalog.frontends["InternVL tiling"].kind == "tiling"
    assert catalog.frontends["InternVL tiling"].parameters == {"tile": 448, "max_tiles": 24}
    assert catalog.frontends["InternVL tiling"].source == load().frontends["InternVL tiling"].source


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("[modles.X]\n", "modles", "did you mean models?"),
        ('[models.X]\nbackbne = "Qwen3-8B"\n', "models.X.backbne", "did you mean backbone?"),
        ('[models.X]\nbackbone = "Qwen9-8B"\n', "models.X.backbone", "a name from backbones"),
        ('[models."X Y"]\nseries = "nowhere"\n', 'models."X Y".series', "a name from series"),
        ("[models.X]\nvision_parameters = -1\n", "models.X.vision_parameters", "a positive whole number"),
        ("[models.X]\nvision_parameters = true\n", "models.X.vision_parameters", "a positive whole number"),
        ('[models.X]\naliases = "one"\n', "models.X.aliases", "a list of texts"),
        ('[models.X]\naliases = ["one"]\n[models.Y]\naliases = ["one"]\n', 'models."Y".aliases', "do not mean X too"),
        ('[models.X]\naliases = ["Y"]\n[models.Y]\n', 'models."X".aliases', "do not mean Y too"),
        ('[models.X]\nencoder = "InternViT-300M"\n', "models.X.encoder", "a backbone with an architecture"),
        ("[backbones.X]\nparameters = 5\n", "backbones.X.source", "where the stated number"),
        ("[backbones.X]\nparameters = 7.5\n", "backbones.X.parameters", "a positive whole number"),
        ('[backbones.X]\nstage = "chat"\n', "backbones.X.stage", "one of base, instruct"),
        ('[backbones.X]\nlike = "X"\n', "backbones.X.like", "not made from this one"),
        ('[backbones.X]\nlike = "Y"\n[backbones.Y]\nlike = "X"\n', "backbones.Y.like", "not made from this one"),
        ('[backbones.X]\nlike = "Z"\n', "backbones.X.like", "a backbone with an architecture"),
        ('[backbones.X]\nlike = "Qwen3-8B"\nparameters = 8000000000\n', "backbones.X.parameters", "8190735360"),
        ('[backbones.X]\nsource = "s"\nparameters = 5\nactive_parameters = 6\n', "backbones.X.active_parameters", "at most `parameters`"),
        ("[backbones.X]\narchitecture = { layers = 2 }\n", "backbones.X.architecture.kind", "one of llama"),
        ('[backbones.X]\narchitecture = { kind = "lama" }\n', "backbones.X.architecture.kind", "did you mean llama?"),
        ('[backbones.X]\nlike = "Qwen3-8B"\narchitecture = { tied = 1 }\n', "backbones.X.architecture.tied", "true or false"),
        ('[backbones.X]\nlike = "Qwen3-8B"\narchitecture = { kv_heads = 64 }\n', "backbones.X.architecture.kv_heads", "at most heads = 32"),
        ('[backbones.X]\nlike = "Qwen3-8B"\narchitecture = { experts = 2 }\n', "backbones.X.architecture.experts", "one of the keys"),
        ('[backbones.X]\nlike = "Qwen3-8B"\narchitecture = { kind = "qwen3_moe" }\n', "backbones.X.architecture.experts", "counted from it"),
        ('[backbones.X]\nlike = "Qwen3-8B"\narchitecture = { vocabulary = 9223372036854775807 }\n', "backbones.X.architecture.kind", "2**63"),
        ('[frontends.X]\nkind = "tiles"\n', "frontends.X.kind", "one of tiling"),
        ("[frontends.X]\n", "frontends.X.kind", "one of tiling"),
        ('[frontends.X]\nkind = "fixed"\nparameters = { a = nan }\n', 'frontends.X."parameters.a"', "a finite number"),
        ("[encoders.X]\n", "encoders.X.architecture", "a table of numbers"),
        ('[series.X]\nfamily = "nobody"\n', "series.X.family", "a name from families"),
        ('[families.X]\nname = "X"\n', "families.X.name", "keys"),
        ("[benchmarks.X]\ntasks = { a = 1 }\n", 'benchmarks.X."tasks.a"', "a text"),
        ('[benchmarks.X]\nsuite = " "\n', "benchmarks.X.suite", "a text"),
        ("models = 3\n", "models", "a table"),
        ("models.X = 3\n", "models.X", "a table"),
        ("[models.X\n", "", "line 1"),
    ],
)  # fmt: skip
def test_faults_name_file_and_key(file: Path, text: str, key: str, says: str) -> None:
    with pytest.raises(SourceFormatError) as caught:
        _read(file, text)
    assert caught.value.path == str(file)
    assert caught.value.place == key
    assert says in str(caught.value)


def test_a_file_that_is_not_utf8_or_not_there(file: Path) -> None:
    file.write_bytes(b'[models.X]\nseries = "\xff"\n')
    with pytest.raises(SourceFormatError, match="byte 21: expected UTF-8 text"):
        read(file)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(file.with_name("none.toml"))


def test_shipped_catalog_survives_the_round_trip(file: Path) -> None:
    file.write_text(dump(load()), encoding="utf-8")
    assert read(file, Catalog()) == load()
    assert read(file).digest == load().digest


def test_digest_is_of_the_content_not_of_its_order() -> None:
    one, two = FamilySpec("one"), FamilySpec("two")
    assert Catalog({"one": one, "two": two}).digest == Catalog({"two": two, "one": one}).digest
    assert Catalog({"one": one}).digest != Catalog({"two": two}).digest


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12).filter(str.strip)
NUMBER = st.integers(1, 2**40)
SMALL = st.integers(1, 512)


@st.composite
def _architectures(draw: st.DrawFn) -> dict[str, object]:
    kind = draw(st.sampled_from(sorted(count.KINDS)))
    numbers: dict[str, int] = {key: draw(st.booleans()) if key == "tied" else draw(SMALL) for key in count.KINDS[kind].numbers}
    for more, fewer in (("experts", "experts_per_token"), ("heads", "kv_heads")):
        if fewer in numbers:
            numbers[more], numbers[fewer] = max(numbers[more], numbers[fewer]), min(numbers[more], numbers[fewer])
    return {"kind": kind, **numbers}


@st.composite
def _backbones(draw: st.DrawFn, name: str, aliases: tuple[str, ...]) -> BackboneSpec:
    stage, source = draw(st.sampled_from([None, "base", "instruct"])), draw(TEXT)
    if draw(st.booleans()):
        architecture = draw(_architectures())
        return BackboneSpec(name, draw(TEXT), stage, architecture, source, *count.count(architecture), aliases)
    return BackboneSpec(name, None, stage, None, source, draw(st.none() | NUMBER), None, aliases)


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """Catalogs as reading gives them: references resolve, spellings are unique."""
    words = draw(st.lists(TEXT.filter(lambda t: "/" not in t), min_size=8, max_size=14, unique=True))
    family, frontend, series, backbone, model, found, benchmark, *aliases = words
    spare = tuple(a for a in aliases if a not in {model, found})
    scalars = st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
    return Catalog(
        families={family: FamilySpec(family)},
        frontends={frontend: FrontendSpec(frontend, draw(st.sampled_from(["tiling", "native"])), draw(st.dictionaries(TEXT, scalars, max_size=4)), draw(st.none() | TEXT))},
        series={series: SeriesSpec(series, family, draw(st.sampled_from([None, frontend]))), found: SeriesSpec(found)},
        backbones={backbone: draw(_backbones(backbone, spare[1:]))},
        models={
            model: ModelSpec(model, series, draw(st.sampled_from([None, backbone])), frontend, None, draw(st.none() | NUMBER), spare),
            found: ModelSpec(found, found),
        },
        benchmarks={
            benchmark: BenchmarkSpec(
                benchmark,
                suite=draw(st.none() | TEXT),
                n_questions=draw(st.none() | NUMBER),
                tasks=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
                aliases=spare[:1],
            )
        },
    )  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(catalog=catalogs())
def test_any_catalog_survives_the_round_trip(file: Path, catalog: Catalog) -> None:
    file.write_text(dump(catalog), encoding="utf-8", newline="")
    again = read(file, Catalog())
    assert again == catalog
    assert again.digest == catalog.digest
