"""The questions of a benchmark: ids, images, options, categories, labels, and the part of their hardness that all series share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracker.simulate.benchmarks import Category, Template, template
from tracker.simulate.images import native_sizes
from tracker.simulate.seeds import generator, quota, strewn
from tracker.simulate.wording import wording

if TYPE_CHECKING:
    from tracker.simulate.spec import BenchmarkPlan, StudyPlan

LETTERS = "ABCDE"
SKILL_HARDNESS = {"S1": -0.3, "S2": -0.8, "S3": 0.9, "S4": 0.4, "S5": -0.2, "S6": 0.7}
DOMAIN_HARDNESS = {"D1": -0.2, "D2": 0.4, "D3": 0.3, "D4": -0.2, "D5": -0.1, "D6": 0.2}


@dataclass(frozen=True, slots=True)
class Question:
    """One question id, as it is written."""

    key: int
    image_key: str
    pair_key: str | None
    cycle: int
    text: str
    options: tuple[str, ...]
    gold: int
    category: Category
    field: str | None
    """Finer category below the subcategory."""
    skill: str
    domain: str


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All questions of a benchmark in the study; arrays run over `questions`."""

    benchmark: str
    template: Template
    questions: tuple[Question, ...]
    image_width: np.ndarray
    image_height: np.ndarray
    n_options: np.ndarray
    gold: np.ndarray
    hardness: np.ndarray
    """Logits that categories, skills and domains add."""
    latent: np.ndarray
    """Standard normal part that all series share."""
    rows: np.ndarray
    """Question of each row of a run, in the order of the data set; a repeated id has two rows."""


def question_set(plan: StudyPlan, benchmark: BenchmarkPlan) -> QuestionSet:
    """Make the questions of a benchmark. Releases of the same questions share words, answers and hardness, not ids and images."""
    made = template(benchmark.name)
    n_images = -(-benchmark.questions // made.cycles)
    shared = generator(plan.seed, "questions", made.pairs or benchmark.name)
    own = generator(plan.seed, "release", benchmark.name)
    sizes = native_sizes(benchmark.images or made.images, n_images, own)
    order = own.permutation(benchmark.questions) if made.pairs else np.arange(benchmark.questions)
    categories = strewn(quota([category.share for category in made.category], n_images), shared)
    questions: list[Question] = []
    for image in range(n_images):
        questions.extend(_cycles(made, image, made.category[categories[image]], order, benchmark, shared))
    latent = np.repeat(shared.standard_normal(n_images), made.cycles)[: benchmark.questions]
    latent = _correlated(latent, shared.standard_normal(len(latent)), 0.92) if made.cycles > 1 else latent
    latent = _correlated(latent, own.standard_normal(len(latent)), 0.92) if made.pairs else latent
    return QuestionSet(
        benchmark=benchmark.name,
        template=made,
        questions=tuple(questions),
        image_width=np.repeat(sizes.width, made.cycles)[: benchmark.questions],
        image_height=np.repeat(sizes.height, made.cycles)[: benchmark.questions],
        n_options=np.array([len(question.options) for question in questions]),
        gold=np.array([question.gold for question in questions]),
        hardness=_hardness(questions),
        latent=latent,
        rows=_rows(benchmark, order, own),
    )


def _cycles(
    made: Template, image: int, category: Category, order: np.ndarray, benchmark: BenchmarkPlan, random: np.random.Generator
) -> list[Question]:
    """The ids of one image: the same question with its options turned once per cycle."""
    skill, domain = _pick(category.skills, random), _pick(category.domains, random)
    n_options = category.options or int(_pick({str(count): share for count, share in made.options.items()}, random))
    words = wording(skill, n_options, random)
    gold = int(random.integers(n_options))
    field = category.fields[int(random.integers(len(category.fields)))] if category.fields else None
    asked = []
    for cycle in range(min(made.cycles, benchmark.questions - image * made.cycles)):
        index = image * made.cycles + cycle
        options = words.options[cycle:] + words.options[:cycle] if cycle < n_options else words.options
        asked.append(
            Question(
                key=int(order[index]),
                image_key=f"{made.task}/{image}",
                pair_key=f"{made.pairs}-{image}-{cycle}" if made.pairs else None,
                cycle=cycle,
                text=words.text,
                options=options,
                gold=(gold - cycle) % n_options if cycle < n_options else gold,
                category=category,
                field=field,
                skill=skill,
                domain=domain,
            )
        )
    return asked


def _pick(shares: dict[str, float], random: np.random.Generator) -> str:
    names = list(shares)
    weights = np.array([shares[name] for name in names], dtype=float)
    return names[int(np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(), side="right"))]


def _correlated(base: np.ndarray, fresh: np.ndarray, share: float) -> np.ndarray:
    """Standard normal numbers of which `share` of the variance is `base`."""
    return np.asarray(np.sqrt(share) * base + np.sqrt(1 - share) * fresh)


def _hardness(questions: list[Question]) -> np.ndarray:
    raw = [question.category.hard + SKILL_HARDNESS[question.skill] + DOMAIN_HARDNESS[question.domain] for question in questions]
    return np.asarray(np.array(raw) - np.mean(raw))


def _rows(benchmark: BenchmarkPlan, order: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Questions in the order of their keys, with the repeated ones strewn in a second time."""
    first = np.argsort(order, kind="stable")
    if not benchmark.repeated:
        return first
    again = random.choice(benchmark.questions, size=benchmark.repeated, replace=False)
    position = np.concatenate([np.arange(benchmark.questions, dtype=float), random.uniform(0, benchmark.questions, benchmark.repeated)])
    return np.concatenate([first, again])[np.argsort(position, kind="stable")]
