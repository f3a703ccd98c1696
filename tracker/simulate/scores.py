"""The score dictionaries of lmms-eval's tasks, and the aggregate scores that follow from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.simulate.questions import LETTERS
from tracker.simulate.rows import text

if TYPE_CHECKING:
    from tracker.simulate.answers import Answers
    from tracker.simulate.questions import Question, QuestionSet


def metrics(layout: str, question: Question, prediction: str, *, correct: bool) -> str:
    """JSON members with the scores of one scored row, as the task writes them, ending in a comma."""
    category, gold = question.category, LETTERS[question.gold]
    if layout == "hrbench":
        score = f'{{"index": {question.key}, "cycle_category": {question.cycle}, "gpt_score": {int(correct)}}}'
        return f'"{category.name}": {score}, "average": {score}, '
    if layout == "vstar":
        score = f'{{"question_id": {question.key}, "category": "{category.name}", "score": {float(correct)}, "prediction": "{prediction}", "ground_truth": "{gold}"}}'
        return f'"vstar_{category.name}_acc": {score}, "vstar_overall_acc": {score}, '
    if layout == "mme_realworld":
        return (
            f'"mme_realworld_score": {{"question_id": {question.key}, "category": "{category.name}", "sub_category": "{category.subcategory}", '
            f'"task_category": {text(question.field)}, "pred_answer": "{prediction}", "answer": "{gold}"}}, '
        )
    return f'"treebench_score": {{"question_id": {question.key}, "category": "{category.name}", "score": {float(correct)}, "prediction": "{prediction}", "answer": "{gold}"}}, '


def score_names(questions: QuestionSet) -> list[str]:
    """Names of the task's metrics."""
    categories = list(dict.fromkeys(category.name for category in questions.template.category))
    return {
        "hrbench": [*categories, "average"],
        "vstar": [*(f"vstar_{name}_acc" for name in categories), "vstar_overall_acc"],
        "mme_realworld": ["mme_realworld_score"],
        "treebench": ["treebench_score"],
    }[questions.template.layout]


def aggregates(questions: QuestionSet, answers: Answers) -> dict[str, Any]:
    """Aggregate scores over the scored rows by each task's own rule: HR-Bench averages cycles, V* counts in percent."""
    asked = [questions.questions[index] for index in answers.question.tolist()]
    category = np.array([question.category.name for question in asked])
    cycle = np.array([question.cycle for question in asked])
    values: dict[str, Any] = {}
    for name in score_names(questions):
        wanted = name.removeprefix("vstar_").removesuffix("_acc")
        chosen = answers.scored & ((category == wanted) if wanted in category else True)
        hits = answers.correct[chosen]
        if not len(hits):
            value, error = 0.0, 0.0
        elif questions.template.layout == "hrbench":
            cycles = cycle[chosen]
            value, error = float(np.mean([hits[cycles == one].mean() for one in np.unique(cycles)])), _clt(hits)
        else:
            scale = 100.0 if questions.template.layout == "vstar" else 1.0
            value, error = float(hits.sum() / len(hits) * scale), _clt(hits) * scale
        values |= {
            f"{name},none": value,
            f"{name}_stderr,none": "N/A",
            f"{name}_stderr_clt,none": error,
            f"{name}_stderr_clustered,none": "N/A",
        }
    return values


def _clt(hits: np.ndarray) -> float:
    return float(np.std(hits, ddof=1) / math.sqrt(len(hits))) if len(hits) > 1 else 0.0
