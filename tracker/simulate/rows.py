"""What the two written forms share: plain values of a run's rows, and the parts of a line that no run changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracker.simulate.questions import LETTERS
from tracker.simulate.responses import WORDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.simulate.answers import Answers
    from tracker.simulate.questions import Question

LETTER_LENGTH = tuple(length for _, length in WORDINGS)
RESPONSE_TEXT = tuple(tuple(text.format(letter) for letter in LETTERS) for text, _ in WORDINGS)
PREDICTION_TEXT = (*LETTERS, "")
"""By position; the last, which -1 finds, is that of a text without an option."""


class Row(NamedTuple):
    """One generation in plain Python values; empty texts where there is nothing."""

    question: int
    failed: bool
    correct: bool
    prediction: str
    response: str
    tokens: int
    tiles: int
    effective_pixels: int
    prompt_tokens: int
    generated_tokens: int
    confidences: str
    """JSON members logit_prediction, p_gold and option_scores; nulls without usable probabilities."""
    latency: str
    """JSON member latency_s (s) with the comma before it; nothing where the study plants none."""


def rows_of(answers: Answers, *, block: int = 4096) -> Iterator[Row]:
    """Rows in file order, made a block at a time."""
    for start in range(0, len(answers.question), block):
        part = slice(start, start + block)
        yield from map(
            Row._make,
            zip(
                answers.question[part].tolist(),
                answers.failed[part].tolist(),
                answers.correct[part].tolist(),
                [PREDICTION_TEXT[index] for index in answers.prediction[part].tolist()],
                _responses(answers, part),
                answers.tokens[part].tolist(),
                answers.tiles[part].tolist(),
                answers.effective_pixels[part].tolist(),
                answers.prompt_tokens[part].tolist(),
                [LETTER_LENGTH[wording] for wording in answers.wording[part].tolist()],
                _confidences(answers, part),
                _latencies(answers, part),
                strict=True,
            ),
        )


def _responses(answers: Answers, part: slice) -> list[str]:
    return [
        "" if failed else RESPONSE_TEXT[wording][letter]
        for failed, wording, letter in zip(
            answers.failed[part].tolist(), answers.wording[part].tolist(), answers.prediction[part].tolist(), strict=True
        )
    ]


def _latencies(answers: Answers, part: slice) -> list[str]:
    if answers.latency is None:
        return [""] * len(answers.question[part])
    return [f', "latency_s": {seconds}' for seconds in answers.latency[part].round(6).tolist()]


_NO_CONFIDENCES = '"logit_prediction": null, "p_gold": null, "option_scores": null'


def _confidences(answers: Answers, part: slice) -> list[str]:
    """Option scores are log-likelihoods of the options in order; p_gold is the confidence of the gold option."""
    logs = np.log(np.maximum(answers.confidence[part], 1e-12)).round(3).tolist()
    width = (answers.confidence[part] > 0).sum(axis=1).tolist()
    parts = zip(answers.logit_prediction[part].tolist(), answers.p_gold[part].round(5).tolist(), logs, width, strict=True)
    return [
        _NO_CONFIDENCES if logit < 0 else f'"logit_prediction": "{LETTERS[logit]}", "p_gold": {p_gold}, "option_scores": {scores[:count]}'
        for logit, p_gold, scores, count in parts
    ]


def identity(question: Question) -> str:
    """JSON members that say which image and which other release a question belongs to, named as columns of the native table."""
    pair = f'"pair_key": {text(question.pair_key)}, ' if question.pair_key else ""
    return f'"image_key": {text(question.image_key)}, {pair}"n_options": {len(question.options)}'


def nature(question: Question) -> str:
    """JSON members that say what kind of question it is."""
    finer = f', "subcategory": {text(question.field)}' if question.field else ""
    return f'"task": "{question.category.task}", "category": {text(question.category.full_name)}{finer}'


def text(value: object) -> str:
    """JSON text as the evaluation tools write it."""
    return json.dumps(value, ensure_ascii=False)
