"""Draw the answers of a run: who is right, what was written, how sure the model was, what failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracker.simulate.questions import LETTERS
from tracker.simulate.seeds import generator
from tracker.simulate.truth import ability_for, wrong_probability

if TYPE_CHECKING:
    from tracker.simulate.cells import Cell, Study
    from tracker.simulate.questions import QuestionSet

RESPONSES = (("{}", 1), ("{}.", 2), ("({})", 3), ("The answer is {}.", 5))
"""How an answer is worded, and its length in generated tokens."""
RESPONSE_SHARES = (0.93, 0.04, 0.02, 0.01)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """How many generations of a run fail, and how many of the others lack probabilities."""

    failed: int
    without_probabilities: int


@dataclass(frozen=True, slots=True)
class Answers:
    """A run; arrays run over its rows in file order."""

    cell: Cell
    question: np.ndarray
    failed: np.ndarray
    correct: np.ndarray
    prediction: np.ndarray
    logit_prediction: np.ndarray
    """Position of the most probable option; -1 without usable probabilities."""
    confidence: np.ndarray
    """Row x option, zero beyond the options; NaN without usable probabilities."""
    p_gold: np.ndarray
    tokens: np.ndarray
    tiles: np.ndarray
    effective_pixels: np.ndarray
    prompt_tokens: np.ndarray
    wording: np.ndarray
    wrong_probability: np.ndarray
    planted_error: float
    mean_tokens: float

    @property
    def scored(self) -> np.ndarray:
        """Rows with an answer."""
        return ~self.failed


def shortfalls(study: Study, cells: list[Cell]) -> dict[Cell, Shortfall]:
    """Whole numbers for the whole study, strewn over runs as equally likely rows would be."""
    rows = np.array([len(study.question_sets[cell.benchmark.name].rows) for cell in cells])
    random = generator(study.plan.seed, "shortfalls")
    failed = _strewn(rows, study.plan.failed, random)
    lacking = _strewn(rows - failed, study.plan.without_probabilities, random)
    return {cell: Shortfall(int(lost), int(bare)) for cell, lost, bare in zip(cells, failed, lacking, strict=True)}


def _strewn(rows: np.ndarray, share: float, random: np.random.Generator) -> np.ndarray:
    total = int(rows.sum())
    return random.multivariate_hypergeometric(rows, round(share * total), method="marginals")


def difficulty(study: Study, questions: QuestionSet, series: str) -> np.ndarray:
    """Latent difficulty of each question for a series, in logits."""
    settings = study.plan.difficulty
    own = generator(study.plan.seed, "difficulty", questions.benchmark, series).standard_normal(len(questions.questions))
    latent = np.sqrt(settings.shared) * questions.latent + np.sqrt(1 - settings.shared) * own
    return np.asarray(questions.hardness + settings.spread * latent)


def draw(study: Study, cell: Cell, shortfall: Shortfall) -> Answers:
    """Draw a run. Over its scored rows the probabilities of a wrong answer average to the planted error."""
    questions = study.question_sets[cell.benchmark.name]
    random = generator(study.plan.seed, "run", cell.model.name, cell.benchmark.name, cell.input_size)
    views = study.views(cell)
    rows, count = questions.rows, len(questions.rows)
    failed = _marked(np.arange(count), shortfall.failed, count, random)
    scored = np.flatnonzero(~failed)
    tokens = views.tokens[rows]
    mean_tokens = float(tokens[scored].mean()) if len(scored) else float(tokens.mean())
    planted = study.planted_error(cell, mean_tokens)
    hardness = difficulty(study, questions, cell.model.series)[rows]
    ability = ability_for(hardness[scored] if len(scored) else hardness, planted)
    wrong_chance = wrong_probability(hardness, ability)
    correct = _correct(study, cell, wrong_chance, rows, random) & ~failed
    gold, options = questions.gold[rows], questions.n_options[rows]
    prediction = np.where(correct, gold, _distractor(study, questions, rows, random))
    agreeing = random.random(count) < study.plan.agreement
    logit = np.where(agreeing, prediction, (prediction + 1 + (random.random(count) * (options - 1)).astype(np.int64)) % options)
    confidence = _confidence(logit, gold, options, 1 - wrong_chance, random)
    bare = failed | _marked(scored, shortfall.without_probabilities, count, random)
    confidence[bare] = np.nan
    return Answers(
        cell=cell,
        question=rows,
        failed=failed,
        correct=correct,
        prediction=prediction,
        logit_prediction=np.where(bare, -1, logit),
        confidence=confidence,
        p_gold=confidence[np.arange(count), gold],
        tokens=tokens,
        tiles=views.tiles[rows],
        effective_pixels=views.effective_pixels[rows],
        prompt_tokens=tokens + _text_tokens(questions)[rows],
        wording=np.searchsorted(np.cumsum(RESPONSE_SHARES), random.random(count), side="right").clip(max=len(RESPONSES) - 1),
        wrong_probability=wrong_chance,
        planted_error=planted,
        mean_tokens=mean_tokens,
    )


def _marked(candidates: np.ndarray, chosen: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Exactly `chosen` of the candidate rows."""
    marked = np.zeros(count, dtype=bool)
    marked[random.choice(candidates, size=chosen, replace=False)] = True
    return marked


def _correct(study: Study, cell: Cell, wrong_chance: np.ndarray, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Right where a uniform number reaches the chance of being wrong: for some rows the question's own, for the others a fresh one."""
    questions = study.question_sets[cell.benchmark.name]
    common = generator(study.plan.seed, "common", questions.benchmark, cell.model.series).random(len(questions.questions))
    own_number = random.random(len(rows)) < study.plan.difficulty.coherence
    return np.asarray(np.where(own_number, common[rows], random.random(len(rows))) >= wrong_chance)


def _distractor(study: Study, questions: QuestionSet, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A wrong option: mostly the one that misleads every model."""
    usual = generator(study.plan.seed, "distractor", questions.benchmark).random(len(questions.questions))[rows]
    chosen = np.where(random.random(len(rows)) < 0.7, usual, random.random(len(rows)))
    options = questions.n_options[rows]
    return np.asarray((questions.gold[rows] + 1 + (chosen * (options - 1)).astype(np.int64)) % options)


def _confidence(
    logit: np.ndarray, gold: np.ndarray, options: np.ndarray, right_chance: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Confidences over the options, highest for the logit prediction, the gold option's rising with the chance to be right."""
    count, width = len(logit), len(LETTERS)
    position = np.arange(count)
    belief = np.clip(right_chance + 0.06 * random.standard_normal(count), 0.0, 1.0)
    chance = 1 / options
    sure = np.where(logit == gold, belief, 1 - belief)
    first = chance + (1 - chance) * (0.35 + 0.6495 * sure)
    weights = 0.5 + random.random((count, width))
    weights[np.arange(width) >= options[:, None]] = 0.0
    weights[position, gold] *= 2.0
    weights[position, logit] = 0.0
    confidence = weights / weights.sum(axis=1, keepdims=True) * (1 - first)[:, None]
    confidence[position, logit] = first
    return np.asarray(confidence)


def _text_tokens(questions: QuestionSet) -> np.ndarray:
    """Rough length of the prompt's text in tokens."""
    return np.array([40 + (len(question.text) + sum(map(len, question.options))) // 4 for question in questions.questions])
