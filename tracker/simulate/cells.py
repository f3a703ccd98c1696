"""The cells of a study: one model at one input size on one benchmark, with its tokens per question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracker.errors import UsageError
from tracker.frontends import Rule, resize_long_edge, rule
from tracker.simulate.laws import law_of
from tracker.simulate.questions import QuestionSet, question_set

if TYPE_CHECKING:
    from tracker.catalog import Catalog
    from tracker.simulate.spec import BenchmarkPlan, Law, StudyPlan


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
    """What a frontend makes of each question's image at one input size."""

    tokens: np.ndarray
    tiles: np.ndarray
    """0 where the rule knows no tiles."""
    effective_pixels: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell before its answers are drawn."""

    model: SimulatedModel
    benchmark: BenchmarkPlan
    input_size: int
    law: Law
    suite: str | None

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"{self.model.name} on {self.benchmark.name} at {self.input_size} px"


@dataclass(slots=True)
class Study:
    """A plan with everything that follows from it and the catalog."""

    plan: StudyPlan
    models: tuple[SimulatedModel, ...]
    suites: dict[str, str | None]
    question_sets: dict[str, QuestionSet]
    _views: dict[tuple[str, str, int], Views] = field(default_factory=dict)

    def cells_of(self, model: SimulatedModel) -> list[Cell]:
        """Cells of a model, by input size, then benchmark: one invocation of the evaluation tool after the other."""
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
        key = (cell.model.frontend, cell.benchmark.name, cell.input_size)
        if key not in self._views:
            self._views[key] = _views(cell.model.rule, self.question_sets[cell.benchmark.name], cell.input_size)
        return self._views[key]

    def planted_error(self, cell: Cell, tokens: float) -> float:
        """The law's error, refused where it is none."""
        error = cell.law.error(cell.model.parameters, tokens, self.plan.reference)
        if 0 < error < 1:
            return error
        message = f"planted error {error:.4g} of {cell.name} ({tokens:,.0f} tokens on average) is not inside (0, 1)"
        raise UsageError(
            message, hint=f"change the law of {cell.law.series} on {cell.law.benchmark or cell.law.suite}, the input size or the images"
        )


def study(plan: StudyPlan, catalog: Catalog) -> Study:
    """Look models and benchmarks up and make the questions."""
    names = list(catalog.models) if plan.models == "all" else list(plan.models)
    models = tuple(_model(catalog, name) for name in names)
    benchmarks = tuple(_named(catalog, benchmark) for benchmark in plan.benchmark)
    plan = plan.model_copy(update={"benchmark": benchmarks})
    sets = {benchmark.name: question_set(plan, benchmark) for benchmark in benchmarks}
    _check_pairs(plan, sets)
    suites = {name: catalog.benchmarks[name].suite for name in sets}
    return Study(plan=plan, models=models, suites=suites, question_sets=sets)


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


def _views(made: Rule, questions: QuestionSet, input_size: int) -> Views:
    seen: dict[tuple[int, int], tuple[int, int, int]] = {}
    numbers = np.empty((len(questions.questions), 3), dtype=np.int64)
    for index, native in enumerate(zip(questions.image_width.tolist(), questions.image_height.tolist(), strict=True)):
        if native not in seen:
            view = made.view(*resize_long_edge(*native, input_size))
            seen[native] = (view.tokens, view.tiles or 0, view.effective_pixels)
        numbers[index] = seen[native]
    return Views(tokens=numbers[:, 0], tiles=numbers[:, 1], effective_pixels=numbers[:, 2])
