"""The cells of a study: one model under one setting on one benchmark, with its tokens per question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracker.errors import UsageError
from tracker.frontends import DynamicTiling, Rule, resize_long_edge, rule
from tracker.simulate.laws import law_of
from tracker.simulate.questions import QuestionSet, question_set
from tracker.simulate.setting import SweepSetting, settings_of, usable_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.catalog import Catalog
    from tracker.simulate.spec import BenchmarkPlan, Law, StudyPlan, SweepPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedModel:
    """A model of the study, as the catalog describes it."""

    name: str
    source: str
    """The name that run folders carry, such as Qwen/Qwen2.5-VL-7B-Instruct."""
    series: str
    parameters: int
    frontend: str
    rule: Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """What a frontend makes of each question's image under one setting."""

    tokens: np.ndarray
    tiles: np.ndarray
    """0 where the rule knows no tiles."""
    effective_pixels: np.ndarray
    held: np.ndarray | None = None
    """Pixels that reduced source images hold; None where they are untouched."""

    def usable(self, rows: np.ndarray, setting: SweepSetting | None) -> float:
        """Tokens at which the law is read, from means over questions: R unless source images are reduced."""
        tokens = float(self.tokens[rows].mean())
        if setting is None or self.held is None:
            return tokens
        return usable_tokens(tokens, float(self.held[rows].mean()), setting.pixels_per_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell before its answers are drawn; either an input size of the grid or a setting of a sweep."""

    model: SimulatedModel
    benchmark: BenchmarkPlan
    input_size: int | None
    law: Law
    suite: str | None
    setting: SweepSetting | None = None

    @property
    def name(self) -> str:
        """How messages name it."""
        place = f"{self.input_size} px"
        if self.setting is not None:
            place = f"{self.setting.knob} {self.setting.value:,}, source quality {self.setting.source_quality}"
        return f"{self.model.name} on {self.benchmark.name} at {place}"

    @property
    def place(self) -> str:
        """Folder of its invocation."""
        if self.setting is None:
            return f"px{self.input_size:04d}"
        return f"{self.setting.knob}-{self.setting.value:04d}/source-{self.setting.source_quality}"

    @property
    def limit(self) -> int | None:
        """How many questions are asked, where these are not all."""
        asked = self.benchmark.questions if self.setting is None else self.setting.questions
        return asked if asked < self.benchmark.questions else None

    @property
    def identity(self) -> tuple[object, ...]:
        """Names that its random numbers depend on."""
        return self.model.name, self.benchmark.name, self.place if self.setting is not None else self.input_size

    @property
    def knob(self) -> tuple[str, int] | None:
        """Knob of the frontend that is stated, with its value: that of a sweep, or the tile limit of a tiling model."""
        if self.setting is not None:
            return self.setting.knob, self.setting.value
        return ("max_tiles", self.model.rule.max_tiles) if isinstance(self.model.rule, DynamicTiling) else None

    @property
    def configuration(self) -> dict[str, str | int]:
        """What its images are fed under, as columns of the native table."""
        knob = {} if self.knob is None else {self.knob[0]: self.knob[1]}
        if self.setting is not None:
            return {"input_mode": "native", **knob, "source_quality": self.setting.source_quality}
        return {"input_mode": "fixed", "input_size": self.input_size or 0, **knob}


@dataclass(slots=True)
class Study:
    """A plan with everything that follows from it and the catalog."""

    plan: StudyPlan
    models: tuple[SimulatedModel, ...]
    suites: dict[str, str | None]
    question_sets: dict[str, QuestionSet]
    swept: tuple[Cell, ...] = ()
    """Cells of the sweeps, by sweep, model, source quality and setting, then benchmark."""
    _views: dict[tuple[str, str, str], Views] = field(default_factory=dict)

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell, those of sweeps last."""
        for model in self.models:
            yield from self.cells_of(model)
        yield from self.swept

    def cells_of(self, model: SimulatedModel) -> list[Cell]:
        """Cells of a model on the grid, by input size, then benchmark: one invocation of the evaluation tool after the other."""
        sizes = sorted({size for benchmark in self.plan.benchmark for size in benchmark.input_sizes})
        return [
            Cell(
                model=model,
                benchmark=benchmark,
                input_size=size,
                law=law_of(self.plan, model.series, self.suites[benchmark.name], benchmark.name),
                suite=self.suites[benchmark.name],
            )
            for size in sizes
            for benchmark in self.plan.benchmark
            if size in benchmark.input_sizes
        ]

    def views(self, cell: Cell) -> Views:
        """Tokens of each question in a cell; the same for every model of one frontend."""
        key = (cell.model.frontend, cell.benchmark.name, cell.place)
        if key not in self._views:
            self._views[key] = _views(cell, self.question_sets[cell.benchmark.name])
        return self._views[key]

    def rows(self, cell: Cell) -> np.ndarray:
        """Question of each row of a cell's run: all rows of the data set, or its first questions once each."""
        rows = self.question_sets[cell.benchmark.name].rows
        if cell.setting is None:
            return rows
        _, first = np.unique(rows, return_index=True)
        return rows[np.sort(first)[: cell.setting.questions]]

    def planted_error(self, cell: Cell, tokens: float) -> float:
        """The law's error, refused where it is none."""
        error = cell.law.error(cell.model.parameters, tokens, self.plan.reference)
        if 0 < error < 1:
            return error
        message = f"planted error {error:.4g} of {cell.name} ({tokens:,.0f} tokens on average) is not inside (0, 1)"
        changes = "the input size" if cell.setting is None else "the setting (a [[sweep]] may have laws of its own)"
        raise UsageError(
            message, hint=f"change the law of {cell.law.series} on {cell.law.benchmark or cell.law.suite}, {changes} or the images"
        )


def study(plan: StudyPlan, catalog: Catalog) -> Study:
    """Look models and benchmarks up and make the questions."""
    gridded = any(benchmark.input_sizes for benchmark in plan.benchmark)
    names = (list(catalog.models) if plan.models == "all" else list(plan.models)) if gridded else []
    models = tuple(_model(catalog, name) for name in names)
    benchmarks = tuple(_named(catalog, benchmark) for benchmark in plan.benchmark)
    plan = plan.model_copy(update={"benchmark": benchmarks})
    sets = {benchmark.name: question_set(plan, benchmark) for benchmark in benchmarks}
    _check_pairs(plan, sets)
    suites = {name: catalog.benchmarks[name].suite for name in sets}
    return Study(plan=plan, models=models, suites=suites, question_sets=sets, swept=_swept(plan, suites, catalog))


def _swept(plan: StudyPlan, suites: dict[str, str | None], catalog: Catalog) -> tuple[Cell, ...]:
    """The cells of every [[sweep]]; one of them owns a model on a benchmark."""
    planned = {benchmark.name: benchmark for benchmark in plan.benchmark}
    cells: list[Cell] = []
    for sweep in plan.sweep:
        counts = _asked(sweep, planned, catalog)
        for model in [_model(catalog, name) for name in sweep.models]:
            taken = {cell.benchmark.name for cell in cells if cell.model.name == model.name} & counts.keys()
            if taken:
                message = f"sweep: {model.name} on {min(taken)} is in two of them"
                raise UsageError(message, hint="a [[sweep]] names all settings of a model on a benchmark")
            laws = {name: law_of(plan, model.series, suites[name], name, own=sweep.law) for name in counts}
            settings = {name: settings_of(sweep, model.name, model.rule, count) for name, count in counts.items()}
            cells += [
                Cell(model=model, benchmark=planned[name], input_size=None, law=laws[name], suite=suites[name], setting=one)
                for same in zip(*settings.values(), strict=True)
                for name, one in zip(settings, same, strict=True)
            ]
    for benchmark in plan.benchmark:
        if not benchmark.input_sizes and benchmark.name not in {cell.benchmark.name for cell in cells}:
            message = f"benchmark {benchmark.name} has no input_sizes and is in no [[sweep]]"
            raise UsageError(message, hint="give it input_sizes, or name it in a [[sweep]]")
    return tuple(cells)


def _asked(sweep: SweepPlan, planned: dict[str, BenchmarkPlan], catalog: Catalog) -> dict[str, int]:
    """Questions of a sweep by catalog name of the benchmark."""
    counts: dict[str, int] = {}
    for given, count in sweep.benchmarks.items():
        known = catalog.benchmark(given)
        if known is None or known.name not in planned:
            message = f"sweep.benchmarks: {given!r} is no [[benchmark]] of the study"
            raise UsageError(message, hint=f"the study has {', '.join(planned)}")
        if count > planned[known.name].questions:
            message = f"sweep.benchmarks: {count:,} questions of {known.name}, which has {planned[known.name].questions:,}"
            raise UsageError(message, hint="a sweep asks some or all of the benchmark's questions")
        counts[known.name] = count
    return counts


def _model(catalog: Catalog, name: str) -> SimulatedModel:
    model = catalog.model(name)
    if model is None:
        message = f"models: the catalog has no {name!r}"
        raise UsageError(message, hint=f"known models: {', '.join(catalog.models)}")
    parameters, frontend = catalog.parameters_of(model), catalog.frontend_of(model)
    if parameters is None or frontend is None:
        message = f"models: the catalog knows no {'parameters' if parameters is None else 'frontend'} of {name!r}"
        raise UsageError(message, hint="a law needs the size of the language part and the token rule")
    source = next((alias for alias in model.aliases if "/" in alias), model.name)
    return SimulatedModel(
        name=model.name,
        source=source,
        series=model.series,
        parameters=parameters,
        frontend=frontend.name,
        rule=rule(frontend.kind, frontend.parameters),
    )


def _named(catalog: Catalog, benchmark: BenchmarkPlan) -> BenchmarkPlan:
    """The benchmark under its catalog name."""
    known = catalog.benchmark(benchmark.name)
    if known is None:
        message = f"benchmark.name: the catalog has no {benchmark.name!r}"
        raise UsageError(message, hint=f"known benchmarks: {', '.join(catalog.benchmarks)}")
    return benchmark.model_copy(update={"name": known.name})


def _check_pairs(plan: StudyPlan, sets: dict[str, QuestionSet]) -> None:
    counts: dict[str, BenchmarkPlan] = {}
    for benchmark in plan.benchmark:
        pairs = sets[benchmark.name].template.pairs
        if pairs is None:
            continue
        other = counts.setdefault(pairs, benchmark)
        if other.questions != benchmark.questions:
            message = f"{other.name} and {benchmark.name} hold the same questions, but are planned with {other.questions} and {benchmark.questions}"
            raise UsageError(message, hint="give both the same number of questions")


def _views(cell: Cell, questions: QuestionSet) -> Views:
    seen: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    numbers = np.empty((len(questions.questions), 4), dtype=np.int64)
    for index, native in enumerate(zip(questions.image_width.tolist(), questions.image_height.tolist(), strict=True)):
        if native not in seen:
            seen[native] = _seen(cell, *native)
        numbers[index] = seen[native]
    tokens, tiles, pixels, held = numbers.T
    reduced = cell.setting is not None and cell.setting.reduced
    return Views(tokens=tokens, tiles=tiles, effective_pixels=pixels, held=held if reduced else None)


def _seen(cell: Cell, width: int, height: int) -> tuple[int, int, int, int]:
    """Tokens, tiles, effective pixels and held pixels of an image; no more pixels are effective than a reduced source holds."""
    if cell.setting is None:
        view = cell.model.rule.view(*resize_long_edge(width, height, cell.input_size or 0))
        return view.tokens, view.tiles or 0, view.effective_pixels, 0
    view, held = cell.setting.view(cell.model.rule, width, height), cell.setting.held(width, height)
    return view.tokens, view.tiles or 0, min(view.effective_pixels, held), held
