"""Predictions and details of one OpenCompass task as rows of native columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.readers.keys import keyed
from tracker.readers.lm_choices import letter
from tracker.readers.opencompass_prompt import Asked, asked, beginning, choices, labels_of
from tracker.readers.values import as_count, as_list, best, is_alphabet, json_text, number, p_gold, text, truth, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CORRECT = ("correct", "is_correct", "cascade_correct")
PREDICTED = ("predictions", "pred", "prediction")
EXPECTED = ("references", "answer", "answers", "gold", "ref", "refr")
_NO_SCORES = frozenset({*CORRECT, *PREDICTED, *EXPECTED, "idx", "index", "id", "type", "res_length", "example_abbr"})
EQUAL = "prediction == gold"
_OTHER_RULE = 0.01
"""How far (in percent) a stated accuracy may be from the one by equality."""


@dataclass(slots=True)
class Details:
    """What an evaluation says of single rows: entries by position; `repeated` is how often each question was asked."""

    entries: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    repeated: int = 1
    judge: str | None = None

    def of(self, index: int) -> Mapping[str, Any]:
        """The entry of one row. Answers of a repeated question lie one after the other in the lists of its entry."""
        if self.repeated == 1:
            return {name: _only(value) for name, value in self.entries.get(index, {}).items()}
        size = len(self.entries)
        entry, turn = self.entries.get(index % size, {}), index // size
        return {name: value[turn] for name, value in entry.items() if isinstance(value, list) and len(value) == self.repeated}


def _only(value: Any) -> Any:
    """Newer versions wrap what an entry holds in a list of one for each time that the question was asked."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


@dataclass(slots=True)
class Table:
    """All rows of one task, and what is true of them together."""

    rows: Sequence[tuple[int, Mapping[str, Any]]]
    details: Sequence[Details] = ()
    kind: str = "gen"
    counts_tokens: bool = False
    by_equality: bool = True
    before: str = ""

    def __post_init__(self) -> None:
        """Tell how the model was asked."""
        first = [row for _, row in self.rows[:50]]
        if any(labels_of(row) for row in first):
            self.kind = "ppl" if any("PPL" in row[f"label: {one}"] for row in first for one in labels_of(row)) else "ll"
        elif any("pred_label" in row and "choices" in row for row in first):
            self.kind = "clp"
        self.counts_tokens = self.kind == "ppl" and all(_tokens(row) is not None for _, row in self.rows)
        heads = [words for _, row in self.rows for words in _inputs(row)[:1]]
        self.before = beginning(heads) if self.kind in {"ppl", "ll"} else ""

    @property
    def repeated(self) -> int:
        """How often each question was asked."""
        return max((one.repeated for one in self.details), default=1)

    @property
    def shots(self) -> int | None:
        """No examples where every row says so."""
        return 0 if self.rows and all(row.get("in-context examples") == "" for _, row in self.rows) else None

    @property
    def scores_are(self) -> str | None:
        """What option_scores are, in words."""
        if self.kind == "ppl":
            return "log-likelihood of the prompt" if self.counts_tokens else "mean log-likelihood per token of the prompt"
        return {"ll": "log-likelihood of the option", "clp": "log-probability of the option"}.get(self.kind)

    def accuracy(self) -> float | None:
        """Share of rows (in percent) whose prediction is equal to their gold answer; None without such rows."""
        hits = [_equal(row) for _, row in self.rows]
        known = [one for one in hits if one is not None]
        return 100.0 * sum(known) / len(known) if known else None

    def agrees(self, stated: float | None) -> bool:
        """Whether a stated accuracy is the one by equality."""
        mine = self.accuracy()
        return stated is None or mine is None or abs(mine - stated) <= _OTHER_RULE

    def native(self, index: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """One record with its question."""
        size = len(self.rows) // self.repeated if self.repeated > 1 else 0
        found = self._chosen(row) if self.kind in {"ppl", "ll", "clp"} else _generated(row)
        found["question_id"] = keyed("opencompass", str(index % size if size else index))
        found["repetition"] = index // size if size else None
        found["correct"] = None
        if self.kind in {"ppl", "ll"} and self.by_equality and (equal := _equal(row)) is not None:
            found |= {"correct": equal, "score_rule": EQUAL}
        for details in self.details:
            _judge(found, details.of(index), details.judge)
        return found

    def _chosen(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """An option chosen by its score."""
        if self.kind == "clp":
            return _by_probability(row)
        labels = labels_of(row)
        inputs = _inputs(row)
        question = choices(inputs, self.before) if inputs and len(inputs) == len(labels) else asked(row.get("origin_prompt"), self.before)
        options = question.options if question.options and len(question.options) == len(labels) else None
        lettered = is_alphabet("".join(labels)) and all(len(one) == 1 for one in labels)
        options = options if options or lettered else labels
        scores = self._scores(row, labels)
        gold = _place(labels, row.get("gold"))
        chosen = _place(labels, row.get("prediction"))
        top = _lowest(row, labels) if self.kind == "ppl" else best(scores)
        known = all(one is not None for one in scores)
        return {
            "text": question.text,
            "options": options,
            "gold": text(row.get("gold")) if gold is None else letter(gold),
            "prediction": text(row.get("prediction")) if chosen is None else letter(chosen),
            "logit_prediction": None if top is None else letter(top),
            "option_scores": scores if known else None,
            "p_gold": p_gold(scores, gold) if known else None,
        }

    def _scores(self, row: Mapping[str, Any], labels: Sequence[str]) -> list[float | None]:
        """A score per option, higher is better: PPL is a mean over the prompt's tokens, so times their number where that is known."""
        entries = [row[f"label: {one}"] for one in labels]
        if self.kind == "ll":
            return [
                next((found for name in entry if "likelihood" in name.lower() and (found := _finite(entry[name])) is not None), None)
                for entry in entries
            ]
        means = [_finite(entry.get("PPL")) for entry in entries]
        tokens = _tokens(row) if self.counts_tokens else None
        weights = tokens or [1] * len(means)
        return [None if mean is None else -mean * weight for mean, weight in zip(means, weights, strict=True)]


def _tokens(row: Mapping[str, Any]) -> list[int] | None:
    """Tokens of each option's prompt: BPB is PPL times tokens over bytes. None where that gives no whole number for one of them.

    A row without numbers (NaN) has no say: its count is 0.
    """
    found: list[int] = []
    for label in labels_of(row):
        entry = row[f"label: {label}"]
        mean, bits, words = _finite(entry.get("PPL")), _finite(entry.get("BPB")), entry.get("testing input")
        if mean is None:
            found.append(0)
            continue
        if bits is None or mean <= 0 or not isinstance(words, str):
            return None
        tokens = bits * len(words.encode("utf-8", "surrogatepass")) / mean
        if not 1 <= tokens < 2**31 or abs(tokens - round(tokens)) > 1e-6 * tokens:
            return None
        found.append(round(tokens))
    return found or None


def _lowest(row: Mapping[str, Any], labels: Sequence[str]) -> int | None:
    """Position of the lowest PPL: OpenCompass's own choice."""
    return best([None if (mean := _finite(row[f"label: {one}"].get("PPL"))) is None else -mean for one in labels])


def _inputs(row: Mapping[str, Any]) -> list[str]:
    entries = (row[f"label: {one}"] for one in labels_of(row))
    return [one["testing input"] for one in entries if isinstance(one.get("testing input"), str) and one["testing input"].strip()]


def _equal(row: Mapping[str, Any]) -> bool | None:
    """Whether prediction and gold are the same text: how OpenCompass compares options."""
    predicted, gold = row.get("prediction"), row.get("gold")
    if predicted is None or gold is None or isinstance(predicted, list | dict) or isinstance(gold, list | dict):
        return None
    return str(predicted) == str(gold)


def _place(labels: Sequence[str], wanted: Any) -> int | None:
    return labels.index(str(wanted)) if wanted is not None and str(wanted) in labels else None


def _by_probability(row: Mapping[str, Any]) -> dict[str, Any]:
    """Probabilities of single-token options."""
    options = [text(one) or "" for one in as_list(row.get("choices"))]
    shares = [_finite(one) for one in as_list(row.get("prediction"))]
    usable = len(shares) == len(options) > 0 and all(one is not None and 0 <= one <= 1 for one in shares)
    scores: list[float | None] = [math.log(one) if one else None for one in shares] if usable else []
    gold = _place(options, row.get("gold"))
    gold = whole(row.get("gold")) if gold is None else gold
    inside = gold is not None and 0 <= gold < len(options)
    chosen = whole(row.get("pred_label"))
    named = letter(chosen) if chosen is not None and 0 <= chosen < len(options) else None
    return {
        "text": asked(row.get("testing input") or row.get("prompt")).text,
        "options": options or None,
        "gold": letter(gold) if inside and gold is not None else text(row.get("gold")),
        "prediction": named,
        "logit_prediction": named,
        "option_scores": scores or None,
        "p_gold": p_gold(scores, gold) if scores and inside else None,
    }


def _generated(row: Mapping[str, Any]) -> dict[str, Any]:
    """An answer in words."""
    question = asked(row.get("origin_prompt", row.get("prompt")))
    gold = text(row.get("gold"))
    if question.options and gold is not None and len(gold) == 1 and "A" <= gold <= "Z" and ord(gold) - ord("A") >= len(question.options):
        question = Asked(question.text)
    said = row.get("prediction")
    said = said.get("prediction") if isinstance(said, dict) else said
    return {
        "text": question.text,
        "options": question.options,
        "gold": gold,
        "response": text(said),
        "prompt_tokens": as_count(row.get("all_input_length")),
        "generated_tokens": as_count(row.get("res_length")),
    }


def _judge(found: dict[str, Any], entry: Mapping[str, Any], judge: str | None) -> None:
    """What an evaluation says of a row; the first that says right or wrong decides, the others are further scores."""
    suffix = f" ({judge})" if judge else ""
    decided = found.get("score_rule") not in {None, EQUAL}
    name = next((one for one in CORRECT if entry.get(one) is not None), None)
    if name is not None:
        said = truth(entry[name])
        if said is not None and not decided:
            found |= {"correct": said, "score_rule": f"details.{name}" + (f" judged by {judge}" if judge else "")}
        elif (value := number(entry[name])) != (None, None):
            found[f"scores.{name}{suffix}"] = value.special or value.value
    if found.get("gold") is None:
        found["gold"] = _first(entry, EXPECTED)
    if found.get("prediction") is None and judge is None:
        found["prediction"] = _first(entry, PREDICTED)
    for key, value in entry.items():
        if key not in _NO_SCORES and isinstance(value, int | float):
            one = number(value)
            found[f"scores.{key}{suffix}"] = one.special or one.value


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> str | None:
    value = next((entry[name] for name in names if entry.get(name) is not None), None)
    return json_text(value) if isinstance(value, list | dict) else text(value)


def _finite(value: Any) -> float | None:
    return number(value).value
