"""How lmms-eval tasks say whether an answer is right: per task, since every task logs what it likes.

The facts are read from lmms_eval/tasks/*/utils.py (0.7.3); docs/formats.md lists them for users.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.readers.values import NOTHING, Number, number, text, truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SCORE_FIELDS = ("score", "gpt_score", "acc", "accuracy", "exact_match", "correct", "is_correct", "hit")
PREDICTION_FIELDS = ("prediction", "pred_answer", "parsed_pred", "pred", "parsed_answer", "predicted_answer")
KEY_FIELDS = ("question_id", "index", "id")
NO_METRICS = frozenset({"submission"})
_BINARY = re.compile(
    r"(?:.*_)?(?:acc|accuracy|exact_match|em|correct|is_correct|hit)(?:_(?:norm|bytes|none|n))?|pass@\d+|mc1|prompt_level_(?:strict|loose)_acc",
    re.IGNORECASE,
)
_OTHER_SCALE = re.compile(
    r"(?:.*_)?(?:bleu|sacrebleu|chrf|rouge|perplexity|bits_per_byte|cider|meteor).*"
    r"|(?:.*[^a-z0-9])?(?:ter|ppl|bert_?score|bleurt|comet|metricx|summac|summarization|prefix_length|mcc|matthews"  # texts that resemble
    r"|wer|cer|mer_score|wip_score|error_rate|(?:edit_?)?distance|levenshtein|mse|rmse|mae|ece|brier|nll|absolute_value_difference"  # errors
    r"|toxicity|toxic_frac|ratings?|elo|judge_score|wildbench(?:_score)?|prometheus(?:_vision)?"  # judges
    r"|latency|runtime|tokens?_count|tokens|count|steps|turns)(?:[^a-z].*)?",  # effort
    re.IGNORECASE,
)
"""Metrics of any framework whose values are no share of right answers: with them 0.5 or 1 may be bad, or a step on a scale from 1 to 10."""
_TEXT = re.compile(r"(?:.*_)?(?:bleu|sacrebleu|chrf|ter|rouge|perplexity|bits_per_byte|cider|meteor)\w*", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Verdict(NamedTuple):
    """How one answer was judged."""

    correct: bool | None = None
    number: Number = NOTHING


UNJUDGED = Verdict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one task's rows are read.

    `field` is the score inside the metric's object; `judge` decides where there is none, from the fields `judged_on` alone where those are named.
    """

    tasks: str
    metrics: tuple[str, ...]
    field: str = "score"
    key: str | None = None
    image: str | None = None
    judge: Callable[[Mapping[str, Any]], bool | None] | None = None
    judged_on: tuple[str, ...] = ()
    says: str | None = None
    category: tuple[str, ...] = ("category",)
    category_is_metric: bool = False
    subcategory: str | None = None
    cycled: bool = False
    """Whether the task asks each question in several option orders under ids of their own: text and sorted options then name the image."""

    def named(self, metric: str) -> str:
        """The rule in words, as `score_rule` keeps it."""
        return self.says or f"{metric}.{self.field}"


def judged_later(_: Mapping[str, Any]) -> bool | None:
    """The task asks a judge when it aggregates; rows hold no score."""
    return None


def contained(entry: Mapping[str, Any]) -> bool | None:
    """MME-RealWorld: the answer's letter is the predicted one or occurs in it."""
    answer, predicted = text(entry.get("answer")), text(entry.get("pred_answer"))
    if answer is None or predicted is None:
        return None
    return answer.lower() in predicted.lower()


def mmmu(entry: Mapping[str, Any]) -> bool | None:
    """MMMU: equality for multiple choice; for open questions an expected text inside, or number among, the parsed candidates."""
    answer, predicted = entry.get("answer"), entry.get("parsed_pred")
    if answer is None or predicted is None:
        return None
    answers = _answers(answer)
    if str(entry.get("question_type")) == "multiple-choice":
        first = predicted[0] if isinstance(predicted, list) and predicted else predicted
        return first in answers
    candidates = predicted[0] if isinstance(predicted, list) and predicted and isinstance(predicted[0], list) else predicted
    expected = [one for each in answers for one in _normalised(str(each))]
    return any(_matches(one, expected) for one in (candidates if isinstance(candidates, list) else [candidates]))


def _answers(answer: Any) -> list[Any]:
    if isinstance(answer, str) and answer.startswith("[") and answer.endswith("]"):
        quoted = re.findall(r"'([^']*)'|\"([^\"]*)\"", answer)
        return [single or double for single, double in quoted] or [answer]
    return answer if isinstance(answer, list) else [answer]


def _normalised(words: str) -> list[Any]:
    words = words.strip()
    value = number(words.replace(",", "")).value
    if value is not None:
        return [round(value, 2)]
    lowered = words.lower()
    return [" " + lowered, lowered + " "] if len(lowered) == 1 else [lowered]


def _matches(candidate: Any, expected: Sequence[Any]) -> bool:
    if isinstance(candidate, str):
        return any(isinstance(one, str) and one in candidate for one in expected)
    return candidate in expected


RULES = (
    Rule(tasks=r"hrbench", metrics=("average",), field="gpt_score", key="index", category=(), category_is_metric=True, cycled=True),
    Rule(tasks=r"vstar", metrics=("vstar_overall_acc",), key="question_id"),
    Rule(
        tasks=r"mme_?realworld",
        metrics=("mme_realworld_score",),
        key="question_id",
        judge=contained,
        says="mme_realworld_score: answer in pred_answer",
        judged_on=("answer", "pred_answer"),
        category=("category", "sub_category"),
        subcategory="task_category",
    ),
    Rule(tasks=r"mmstar", metrics=("average",), key="question_id", category=(), category_is_metric=True, subcategory="l2_category"),
    Rule(tasks=r"mmmu", metrics=("mmmu_acc",), key="id", judge=mmmu, says="mmmu_acc: parsed_pred against answer", subcategory="subdomain"),
    Rule(
        tasks=r"mmbench",
        metrics=("gpt_eval_score",),
        key="index",
        judge=judged_later,
        says="gpt_eval_score: judged at aggregation",
        subcategory="L2-category",
    ),
    Rule(tasks=r"pope", metrics=("pope_accuracy",)),
    Rule(tasks=r"mme$", metrics=("mme_perception_score", "mme_cognition_score", "mme_percetion_score"), image="question_id"),
    Rule(
        tasks=r"tree_?bench", metrics=("treebench_score", "average", "overall", "accuracy"), key="question_id", subcategory="sub_category"
    ),
)
"""Tasks whose rows need knowing. MME and POPE use one question_id for several questions, so their key stays doc_id."""


def rule_of(task: str, names: Sequence[str]) -> Rule | None:
    """The rule of a task, if one of its metrics is really among a row's names."""
    for rule in RULES:
        if re.match(rule.tasks, task, re.IGNORECASE) and any(metric in names for metric in rule.metrics):
            return rule
    return None


@cache
def is_binary(name: str) -> bool:
    """Whether a metric of this name says right or wrong, so that 1 is right and 0 is wrong."""
    return _BINARY.fullmatch(name) is not None


@cache
def has_other_scale(name: str) -> bool:
    """Whether a metric's values are no share of right answers even where they lie in [0, 1]: `rouge1`, `mean_rating`, `EditDistance`.

    What is told by a word inside the name is whole words: `answer_acc` is no `wer`. An accuracy over steps or turns is an accuracy.
    """
    found = _OTHER_SCALE.fullmatch(name) or _OTHER_SCALE.fullmatch(_CAMEL.sub("_", name))
    return found is not None and (not is_binary(name) or measures_text(name))


@cache
def measures_text(name: str) -> bool:
    """Whether a name is that of a metric of texts, such as `bleu` or `perplexity`, that no benchmark is called."""
    return _TEXT.fullmatch(name) is not None


def graded(value: Any, *, binary: bool) -> Verdict:
    """A single score. Words (also numpy's "True" of old versions) and numbers are read alike."""
    if isinstance(value, str | bool):
        said = truth(value)
        value = float(said) if said is not None else value
    found = number(value)
    if not binary or found.value not in {0.0, 1.0}:
        return Verdict(None, found)
    return Verdict(found.value == 1.0, found)


def judged(value: Any, metric: str, rule: Rule | None, score_key: str | None) -> Verdict:
    """A metric's value: an object with or without a score in it, or a single score."""
    if not isinstance(value, dict):
        return graded(value, binary=is_binary(metric))
    if rule is not None and rule.judge is not None:
        correct = rule.judge(value)
        return Verdict(correct, NOTHING if correct is None else Number(float(correct), None))
    name = rule.field if rule is not None else score_field(value, score_key)
    if name is None:
        return UNJUDGED
    return graded(value.get(name), binary=rule is not None or is_binary(name) or is_binary(metric))


def score_field(entry: Mapping[str, Any], score_key: str | None = None) -> str | None:
    """The name of the score inside a metric's object of an unknown task."""
    wanted = (score_key, *SCORE_FIELDS) if score_key else SCORE_FIELDS
    return next((name for name in wanted if name in entry), None) or next(
        (name for name in entry if name.endswith(("_score", "_acc"))), None
    )


def predicted(entry: Mapping[str, Any]) -> str | None:
    """The parsed answer inside a metric's object."""
    for name in PREDICTION_FIELDS:
        value = entry.get(name)
        if value is not None:
            return text(value[0] if isinstance(value, list) and len(value) == 1 else value)
    return None
