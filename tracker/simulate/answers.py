"""Draw the answers of a run: who is right, what was written, how sure the model was, what failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracker.simulate.questions import LETTERS
from tracker.simulate.responses import CUT_OFF, CUT_OFF_UNPARSED, SHARES, UNPARSED
from tracker.simulate.seeds import generator
from tracker.simulate.truth import ability_for, wrong_probability

if TYPE_CHECKING:
    from tracker.simulate.cells import Cell, Study
    from tracker.simulate.questions import QuestionSet


@dataclass(frozen=True, slots=True)
class Shortfall:
    """How many generations of a run fail; of the others how many lack probabilities, reach the token limit, name no option."""

    failed: int
    without_probabilities: int
    token_limit_hits: int = 0
    unparsed: int = 0


@dataclass(frozen=True, slots=True)
class Answers:
    """A run; arrays run over its rows in file order."""

    cell: Cell
    question: np.ndarray
    failed: np.ndarray
    correct: np.ndarray
    prediction: np.ndarray
    """Position of the option that the text names; -1 where it names none."""
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
    usable_tokens: float
    """Tokens at which the law was read."""
    latency: np.ndarray | None
    """Seconds; None where the study plants none."""

    @property
    def scored(self) -> np.ndarray:
        """Rows with an answer."""
        return ~self.failed

    @property
    def both_signals(self) -> np.ndarray:
        """Rows whose text names an option and that have usable probabilities."""
        return self.scored & (self.prediction >= 0) & (self.logit_prediction >= 0)

    @property
    def at_limit(self) -> np.ndarray:
        """Rows whose text ran into the token limit."""
        return np.asarray(self.scored & np.isin(self.wording, (CUT_OFF, CUT_OFF_UNPARSED)))


def shortfalls(study: Study, cells: list[Cell], *, of: str = "shortfalls") -> dict[Cell, Shortfall]:
    """Whole numbers for all these cells, strewn over runs as equally likely rows would be; `of` names their random numbers."""
    if not cells:
        return {}
    plan = study.plan
    rows = np.array([len(study.rows(cell)) for cell in cells])
    random = generator(plan.seed, of)
    failed = _strewn(rows, plan.failed, random)
    shares = (plan.without_probabilities, plan.token_limit_hits, plan.unparsed)
    numbers = np.array([failed, *(_strewn(rows - failed, share, random) for share in shares)])
    return {cell: Shortfall(*map(int, column)) for cell, column in zip(cells, numbers.T.tolist(), strict=True)}


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
    random = generator(study.plan.seed, "run", *cell.identity)
    views, rows = study.views(cell), study.rows(cell)
    count = len(rows)
    failed = _marked(np.arange(count), shortfall.failed, count, random)
    scored = np.flatnonzero(~failed)
    tokens = views.tokens[rows]
    counted = rows[scored] if len(scored) else rows
    usable = views.usable(counted, cell.setting)
    planted = study.planted_error(cell, usable)
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
    wording = np.searchsorted(np.cumsum(SHARES), random.random(count), side="right").clip(max=len(SHARES) - 1)
    wording = _endings(wording, scored, ~correct & ~failed, shortfall, generator(study.plan.seed, "endings", *cell.identity))
    prompt_tokens = tokens + _text_tokens(questions)[rows]
    return Answers(
        cell=cell,
        question=rows,
        failed=failed,
        correct=correct,
        prediction=np.where(wording > CUT_OFF, -1, prediction),
        logit_prediction=np.where(bare, -1, logit),
        confidence=confidence,
        p_gold=confidence[np.arange(count), gold],
        tokens=tokens,
        tiles=views.tiles[rows],
        effective_pixels=views.effective_pixels[rows],
        prompt_tokens=prompt_tokens,
        wording=wording,
        wrong_probability=wrong_chance,
        planted_error=planted,
        mean_tokens=float(views.tokens[counted].mean()),
        usable_tokens=usable,
        latency=_latency(study, cell, prompt_tokens),
    )


def _endings(wording: np.ndarray, scored: np.ndarray, wrong: np.ndarray, shortfall: Shortfall, random: np.random.Generator) -> np.ndarray:
    """Texts that reach the token limit, and texts without an option: wrong ones, first those that are cut off."""
    if not shortfall.token_limit_hits and not shortfall.unparsed:
        return wording
    wording = wording.copy()
    cut = _marked(scored, shortfall.token_limit_hits, len(wording), random)
    wording[cut] = CUT_OFF
    candidates = np.flatnonzero(wrong)
    order = candidates[np.lexsort((random.random(len(candidates)), ~cut[candidates]))]
    chosen = order[: shortfall.unparsed]
    wording[chosen] = np.where(cut[chosen], CUT_OFF_UNPARSED, UNPARSED)
    return wording


def _latency(study: Study, cell: Cell, prompt_tokens: np.ndarray) -> np.ndarray | None:
    planted = study.plan.latency
    if planted is None:
        return None
    z = generator(study.plan.seed, "latency", *cell.identity).standard_normal(len(prompt_tokens))
    factor = np.exp(planted.noise * z - planted.noise**2 / 2)
    return np.array([planted.expected(cell.model.parameters, tokens) for tokens in prompt_tokens.tolist()]) * factor


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
