"""The rows of one subset, predictions and reviews together, in native columns.

From 1.0 on a review holds the score and the whole conversation, a prediction the timing and the tokens; before 1.0 a review is
the prediction with a review in each of its choices.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.evalscope_prompt import Asked, Template, said_by
from tracker.readers.evalscope_report import DEFAULTS, is_share, says_correct
from tracker.readers.keys import own_ids
from tracker.readers.lines import json_lines, raw_lines
from tracker.readers.lm_answers import OPTION_FIELDS, TEXT_FIELDS
from tracker.readers.lm_choices import letter
from tracker.readers.single import chunk_of
from tracker.readers.values import as_mapping, best, content_hash, json_text, number, option_list, p_gold, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tracker.readers.lines import Line
    from tracker.readers.tabular import Chunk

CHUNK_ROWS = 4_000
CHUNK_BYTES = 32 << 20
PROMPTS_COMPARED = 200
_INDEX = re.compile(rb'\s*\{\s*"index"\s*:\s*(-?\d+|"[^"\\]*")')
_FAILED = frozenset({"error", "failed"})


class Timing(NamedTuple):
    """What a prediction tells beside its text."""

    latency_s: float | None = None
    ttft_s: float | None = None
    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    failed: bool = False


@dataclass(slots=True)
class Subset:
    """One subset of a benchmark being read; what was met decides at the end whether the run is complete."""

    benchmark: str
    name: str
    category: str | None
    template: Template
    primary: str | None
    other_scales: frozenset[str]
    repeats: int | None = None
    several: bool = False
    """Whether the benchmark has several subsets."""
    rows: int = 0
    unscored: int = 0
    damage: list[str] = field(default_factory=list)
    spec: dict[str, Any] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    _turns: Counter[Any] = field(default_factory=Counter)

    def chunks(self, predictions: Path | None, reviews: Path | None) -> Iterator[tuple[str, Chunk | Refusal]]:
        """The rows in file order, reviews first, then predictions that nobody reviewed; each with its file."""
        timings = self._timings(predictions, quiet=reviews is not None) if predictions is not None and reviews is not None else {}
        reviewed: set[Any] = set()
        if reviews is not None:
            yield from self._read(reviews, timings, reviewed)
        if predictions is not None and not (timings and timings.keys() <= reviewed):
            self._turns.clear()
            yield from self._read(predictions, {}, reviewed, only_new=True)

    def _read(
        self, path: Path, timings: Mapping[Any, Timing], reviewed: set[Any], *, only_new: bool = False
    ) -> Iterator[tuple[str, Chunk | Refusal]]:
        """One file. Where an index comes again the last row counts, as in EvalScope itself."""
        done: frozenset[Any] = frozenset(reviewed) if only_new else frozenset()
        try:
            last, again = last_lines(path)
            shots = self.template.shots(_first_prompts(path)) if self.template.boundary is not None else ""
            rows: list[dict[str, Any]] = []
            places: list[int] = []
            size = seen = 0
            for line in json_lines(path):
                seen = line.number
                row = self._row(line, path)
                if isinstance(row, Refusal):
                    yield str(path), row
                    continue
                index = _index(row, line.number)
                if index in done or last.get(index, line.number) != line.number:
                    continue
                reviewed.add(index)
                for made in self.records(row, index, timings.get(index), shots):
                    rows.append(made)
                    places.append(line.number)
                size += len(line.raw)
                if len(rows) >= CHUNK_ROWS or size >= CHUNK_BYTES:
                    yield str(path), chunk_of(rows, places, unit="line")
                    rows, places, size = [], [], 0
            if rows:
                yield str(path), chunk_of(rows, places, unit="line")
            if not seen:
                yield str(path), Refusal(file=str(path), reason="empty file (delete it or run EvalScope again)")
            if again:
                reason = f"{again} rows of samples that come again later (the last one counts, as in EvalScope; nothing to do)"
                yield str(path), Refusal(file=str(path), reason=reason)
        except InputError as err:
            self.damage.append(f"{path.parent.parent.name}/{path.name}: {err.message}")
            reason = err.reason
            yield str(path), Refusal(file=str(path), reason=reason)

    def _row(self, line: Line, path: Path) -> dict[str, Any] | Refusal:
        if line.error is not None:
            if line.truncated:
                self.damage.append(f"{path.name} is cut off in line {line.number}")
            return Refusal(file=str(path), line=line.number, reason=line.error, text=line.text)
        row = line.value
        if not isinstance(row, dict):
            reason = f"expected an object, found {type(row).__name__} (correct or delete the line)"
            return Refusal(file=str(path), line=line.number, reason=reason, text=line.text)
        if not ({"sample_score", "model_output", "choices"} & row.keys()):
            reason = "expected a prediction or a review: none of sample_score, model_output, choices (correct or delete the line)"
            return Refusal(file=str(path), line=line.number, reason=reason, text=line.text)
        return row

    def records(self, row: Mapping[str, Any], index: Any, timing: Timing | None, shots: str) -> Iterator[dict[str, Any]]:
        """The records of a row: one from 1.0 on, before that one per choice."""
        if "model_output" in row or "sample_score" in row:
            yield self._counted(self._modern(row, index, timing, shots))
            return
        spec = row.get("model_spec")
        if isinstance(spec, dict) and not self.spec:
            self.spec = spec
        for name in ("created", "review_time"):
            moment = number(row.get(name)).value
            if moment is not None and 0 < moment < 32_503_680_000:
                self.times[:] = [min([moment, *self.times]), max([moment, *self.times])]
        choices = row.get("choices")
        listed = [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
        for place, choice in enumerate(listed or [{}]):
            yield self._counted(self._older(row, index, choice, place))

    def _counted(self, made: dict[str, Any]) -> dict[str, Any]:
        self.rows += 1
        if made["correct"] is None and made["score"] is None and not made["scores"]:
            self.unscored += 1
        return made

    def _modern(self, row: Mapping[str, Any], index: Any, timing: Timing | None, shots: str) -> dict[str, Any]:
        sample = as_mapping(row.get("sample_score"))
        score = as_mapping(sample.get("score"))
        output = as_mapping(row.get("model_output"))
        timing = timing or timing_of(row)
        group = sample.get("group_id")
        question = group if isinstance(group, int | str) and not isinstance(group, bool) else index
        if question == index and self.repeats is not None and self.repeats > 1 and not sample and isinstance(index, int):
            question = index // self.repeats
        asked = self.template.asked(row.get("messages"), shots)
        metadata = as_mapping(sample.get("sample_metadata")) or as_mapping(row.get("metadata"))
        response = text(score.get("prediction")) if sample else None
        target = row.get("target")
        gold = target[0] if isinstance(target, list) and len(target) == 1 else target
        main = text(score.get("main_score_name")) or self.primary
        unusable = not sample and (timing.failed or (output.get("error") is not None and not output.get("choices")))
        return {
            "question_id": self._key(question, metadata),
            "repetition": self._repetition(sample.get("generation_index"), question, index),
            "prediction": text(score.get("extracted_prediction")),
            "response": response if response is not None else _answer(output, row.get("messages")),
            "gold": text(gold) or None,
            "status": "failed" if unusable or (timing.failed and not score.get("value")) else None,
            **self._judged(score.get("value"), main),
            **self._question(asked),
            **_told(timing),
        }

    def _older(self, row: Mapping[str, Any], index: Any, choice: Mapping[str, Any], place: int) -> dict[str, Any]:
        raw = as_mapping(row.get("raw_input"))
        review = as_mapping(choice.get("review"))
        content = as_mapping(choice.get("message")).get("content")
        options = next((found for name in OPTION_FIELDS if isinstance(raw.get(name), list | dict) and (found := _options(raw[name]))), None)
        asked = next((raw[name] for name in TEXT_FIELDS if isinstance(raw.get(name), str) and raw[name].strip()), None)
        gold = review.get("gold")
        result = review.get("result")
        made = {
            "question_id": self._key(index, raw),
            "repetition": place,
            "prediction": text(review.get("pred")),
            "response": content if isinstance(content, str) else None,
            "gold": None if gold in ("", "*Same as Input*") else text(gold),
            "status": None,
            **self._judged(result if isinstance(result, dict) else {self.primary or "result": result}, self.primary),
            **self._question(Asked(asked, options)),
            **_told(timing_of(row)),
        }
        return made | _likelihoods(content, gold, options, made["prediction"])

    def _judged(self, value: Any, main: str | None) -> dict[str, Any]:
        """Credit by the main score if it can be a share of right answers, else by the first that can; all others beside it."""
        given = {name: one for name, one in value.items() if one is not None} if isinstance(value, dict) else {}
        flat = {
            (name if part is None else f"{name}.{part}"): one
            for name, holder in given.items()
            for part, one in (holder.items() if isinstance(holder, dict) else [(None, holder)])
        }
        shares = [name for name in flat if is_share(name, self.other_scales)]
        primary = main if main in shares else next(iter(shares), None)
        found = flat.pop(primary) if primary is not None else None
        if isinstance(found, str) and found.strip().lower() in {"true", "false"}:
            found = found.strip().lower() == "true"
        correct = found if isinstance(found, bool) else None
        if correct is None and primary is not None and says_correct(primary) and number(found).value in {0.0, 1.0}:
            correct = number(found).value == 1.0
        return {
            "correct": correct,
            "score": float(found) if isinstance(found, bool) else found,
            "score_rule": primary if found is not None else None,
            "scores": flat,
        }

    def _question(self, asked: Asked) -> dict[str, Any]:
        inner = self.name if self.several and self.name.lower() not in DEFAULTS else None
        return {
            "text": asked.text,
            "options": asked.options,
            "image_key": asked.image,
            "content_hash": content_hash(asked.text, asked.options) if asked.text else None,
            "category": self.category or inner,
            "subcategory": inner if self.category else None,
        }

    def _key(self, question: Any, metadata: Mapping[str, Any]) -> str:
        """The data set's own id where the benchmark is known to have one, else the position in the subset."""
        for name in own_ids(self.benchmark):
            key = text(metadata.get(name))
            if key is not None and key.strip():
                return key
        return f"evalscope:{self.name}/{text(question)}"

    def _repetition(self, stated: Any, question: Any, index: Any) -> int:
        """Which of a question's repeats this is: as stated, else by `repeats`, else by order in the file."""
        turn = self._turns[question]
        self._turns[question] += 1
        place = whole(stated)
        if place is not None and place >= 0:
            return place
        if (
            self.repeats is not None
            and isinstance(index, int)
            and isinstance(question, int)
            and 0 <= index - question * self.repeats < self.repeats
        ):
            return index - question * self.repeats
        return turn

    def _timings(self, path: Path, *, quiet: bool) -> dict[Any, Timing]:
        """Timing of every prediction by index; damage is reported where the file is read for its rows."""
        found: dict[Any, Timing] = {}
        try:
            for line in json_lines(path):
                if isinstance(line.value, dict):
                    found[_index(line.value, line.number)] = timing_of(line.value)
                elif quiet:
                    found[("damaged", line.number)] = Timing()
        except InputError:
            return {("damaged", 0): Timing()}
        return found


def timing_of(row: Mapping[str, Any]) -> Timing:
    """Timing and tokens of a prediction, by either version's names; of a review the last message tells them."""
    output = as_mapping(row.get("model_output"))
    usage = as_mapping(output.get("usage")) or as_mapping(row.get("usage"))
    perf = as_mapping(output.get("perf_metrics"))
    messages = row.get("messages")
    if not perf and isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        perf = as_mapping(messages[-1].get("perf_metrics"))
    asked = _first(usage, perf, ("input_tokens", "prompt_tokens"))
    made = _first(usage, perf, ("output_tokens", "completion_tokens"))
    if not asked and not made:
        asked = made = None
    latency = number(perf.get("latency")).value
    failed = output.get("error") not in (None, "") or text(row.get("status")) in _FAILED
    return Timing(
        latency_s=latency if latency is not None else number(output.get("time")).value,
        ttft_s=number(perf.get("ttft")).value,
        prompt_tokens=asked,
        generated_tokens=made,
        failed=failed,
    )


def last_lines(path: Path) -> tuple[dict[Any, int], int]:
    """The line of the last row of each index, and how many rows come before a later one of theirs; without parsing the rows."""
    found: dict[Any, int] = {}
    again = 0
    try:
        with path.open("rb") as stream:
            for line, raw, _ in raw_lines(stream):
                match = _INDEX.match(raw) if raw is not None else None
                if match is None:
                    continue
                name = match[1].decode("utf-8", "replace")
                key = name[1:-1] if name.startswith('"') else int(name) if len(name) < 20 else name
                again += key in found
                found[key] = line
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        raise InputError(message, where=str(path)) from err
    return found, again


def _first_prompts(path: Path) -> list[str]:
    found: list[str] = []
    for line in json_lines(path):
        if isinstance(line.value, dict) and (said := said_by(line.value.get("messages"), "user")[0]) is not None:
            found.append(said)
        if len(found) >= PROMPTS_COMPARED:
            break
    return found


def _index(row: Mapping[str, Any], line: int) -> Any:
    """The sample's id; before 0.12 rows have none and their place stands for it."""
    index = row.get("index")
    return index if isinstance(index, int | str) and not isinstance(index, bool) and index != "" else f"line {line}"


def _answer(output: Mapping[str, Any], messages: Any) -> str | None:
    """The text that the model gave."""
    choices = output.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = as_mapping(choices[0].get("message"))
        return said_by([{**message, "role": "assistant"}], "assistant")[0]
    return said_by(messages, "assistant")[0]


def _told(timing: Timing) -> dict[str, Any]:
    told: dict[str, Any] = {
        "latency_s": timing.latency_s,
        "prompt_tokens": timing.prompt_tokens,
        "generated_tokens": timing.generated_tokens,
    }
    return told | {"scores.ttft_s": timing.ttft_s} if timing.ttft_s is not None else told


def _likelihoods(content: Any, gold: Any, options: list[str] | None, predicted: str | None) -> dict[str, Any]:
    """Before 1.0 a continuation task's content is the log-likelihood of each option."""
    if (
        not isinstance(content, list)
        or len(content) < 2
        or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in content)
    ):
        return {}
    likelihoods: list[float | None] = [float(one) for one in content]
    place = whole(gold)
    if place is None and options and isinstance(gold, str):
        place = next((at for at, option in enumerate(options) if option.strip() == gold.strip()), None)
    inside = place is not None and 0 <= place < len(likelihoods)
    likeliest, said = best(likelihoods), whole(predicted)
    return {
        "option_scores": json_text(likelihoods),
        "p_gold": p_gold(likelihoods, place) if inside else None,
        "logit_prediction": None if likeliest is None else letter(likeliest),
        "prediction": letter(said) if said is not None and 0 <= said < len(likelihoods) else predicted,
        "gold": letter(place) if inside and place is not None else text(gold),
        "options": options if options is not None and len(options) == len(likelihoods) else None,
        "n_options": len(likelihoods),
    }


def _options(value: Any) -> list[str] | None:
    """Options of a data set's row: a list, or an object with a list of texts in it."""
    inner = value.get("text") if isinstance(value, dict) and isinstance(value.get("text"), list) else value
    found = option_list(inner)
    return found if found and len(found) > 1 else None


def _first(usage: Mapping[str, Any], perf: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    found = [whole(holder.get(name)) for holder in (usage, perf) for name in names]
    return next((one for one in found if one is not None and one >= 0), None)
