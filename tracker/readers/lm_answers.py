"""The rows of one lm-eval samples file: one record per document, judged by the primary filter; other filters become further scores."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.readers import lm_choices
from tracker.readers.lines import shorten
from tracker.readers.lm_rows import paused_collector, row_blocks
from tracker.readers.lm_rules import graded, has_other_scale, is_binary
from tracker.readers.lm_samples import SHORT_ANSWER, further
from tracker.readers.lm_table import CHUNK_BYTES, CHUNK_ROWS, CONVERTERS, KEY_NAMES, Chunk, hashed, options_text, tables
from tracker.readers.values import NOTHING, Number, json_text, number, option_list, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tracker.readers.lm_results import Results
    from tracker.readers.lm_rows import Block

WRITTEN = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"}
)
"""Keys of a row that are no metric."""
TEXT_FIELDS = ("question", "problem", "query", "prompt", "instruction", "input", "goal", "ctx", "sentence", "text")
OPTION_FIELDS = ("choices", "options", "endings", "multi-choice options")
PREFERRED = ("exact_match", "acc", "accuracy", "acc_norm", "em", "prompt_level_strict_acc", "pass@1", "mc1", "f1")
"""Primary metrics where no results file orders them."""


@dataclass(frozen=True, slots=True)
class _Filters:
    """The filters of a file: the primary one, and where rows are not labelled (before 0.4.7) how many there are."""

    primary: str | None = None
    unlabelled: tuple[str, ...] = ()
    attempts: dict[Any, int] = field(default_factory=dict)
    others: dict[tuple[Any, int], list[tuple[str, Number]]] = field(default_factory=dict)
    rows: int = 0


@dataclass
class Reading:
    """One samples file being read; what has been seen decides at the end whether the run is complete."""

    path: Path
    task: str
    results: Results
    seen: set[Any] = field(default_factory=set)
    truncated: bool = False
    damage: str | None = None
    missing: str | None = None
    _occurrences: Counter[Any] = field(default_factory=Counter)
    _rows: int = 0
    _listed: list[str] = field(default_factory=list)

    def parts(self) -> Iterator[Refusal | dict[str, Any]]:
        """Refusals, and the tables of bounded chunks."""
        self._listed = [name for name in self.results.metrics(self.task) if not has_other_scale(name)]
        filters = self._filters()
        blocks, more = row_blocks(self.path), True
        while more:
            refusals: list[Refusal] = []
            with paused_collector():
                made, more = self._chunk(blocks, filters, refusals)
            yield from refusals
            if made is not None:
                yield made

    def reason(self) -> str | None:
        """Why the run is partial, if it is."""
        if self.damage:
            return self.damage
        if self.truncated:
            return "samples file is cut off"
        expected, asked = self.results.expected(self.task), len(self.seen)
        if expected is not None and asked < expected:
            return f"{asked} of {expected} questions"
        several = len(self.results.filters(self.task))
        if expected is not None and several > 1 and self._rows < expected * several:
            return f"{self._rows} of {expected * several} rows ({several} filters)"
        return None

    def _chunk(self, blocks: Iterator[Block], filters: _Filters, refusals: list[Refusal]) -> tuple[dict[str, Any] | None, bool]:
        """The tables of the next chunk, and whether more may follow."""
        chunk, size = Chunk(), 0
        for block in blocks:
            refusals += block.refusals
            self.truncated = self.truncated or block.truncated
            size += block.size
            self._take(block, filters, chunk, refusals)
            if len(chunk.keys) >= CHUNK_ROWS or size > CHUNK_BYTES:
                return self._made(chunk, refusals), True
        return self._made(chunk, refusals), False

    def _made(self, chunk: Chunk, refusals: list[Refusal]) -> dict[str, Any] | None:
        if not chunk.keys:
            return None
        made = tables(chunk, str(self.path), self.seen)
        refusals += made.refusals
        return {"records": made.records, "questions": made.questions, "labels": made.labels, "record_scores": made.record_scores}

    def _take(self, block: Block, filters: _Filters, chunk: Chunk, refusals: list[Refusal]) -> None:
        keys: list[Any] = []
        lines: list[int] = []
        answers: list[dict[str, Any]] = []
        kept: list[dict[str, Any]] = []
        self._rows += len(block.rows)
        for line, row in zip(block.lines, block.rows, strict=True):
            key = _key(row)
            if key is None:
                reason = "no doc_id, so that the question is not known (correct or delete the line)"
                refusals.append(Refusal(file=str(self.path), line=line, reason=reason, text=shorten(json_text(row))))
                continue
            attempt = self._occurrences[key]
            self._occurrences[key] += 1
            if not _is_primary(row, key, attempt, filters):
                continue
            answer, scorers, problem = self._answer(row, filters.primary)
            if problem:
                refusals.append(Refusal(file=str(self.path), line=line, reason=problem))
            place = len(chunk.keys) + len(keys)
            turn = attempt if filters.unlabelled else self._turn(key)
            scorers.extend(filters.others.get((key, turn), ()))
            chunk.scorers.extend((place, name, found) for name, found in scorers)
            keys.append(key)
            lines.append(line)
            answers.append(answer)
            kept.append(row)
        if keys:
            names = dict.fromkeys(name for answer in answers for name in answer)
            own = {name: [answer.get(name) for answer in answers] for name in names}
            chunk.add(keys, lines, own, _native(kept))

    def _turn(self, key: Any) -> int:
        """How often the primary filter's row of a document came before."""
        turn = self._occurrences[key, "primary"]
        self._occurrences[key, "primary"] += 1
        return turn

    def _answer(self, row: Mapping[str, Any], filtered_by: str | None) -> tuple[dict[str, Any], list[tuple[str, Number]], str | None]:
        """The record's values, its further scores, and what is wrong with it."""
        metric, scorers = self._scores(row)
        verdict = graded(row.get(metric), binary=is_binary(metric)) if metric is not None else None
        stated = row.get("doc")
        doc = stated if isinstance(stated, dict) else {}
        filtered, target = row.get("filtered_resps"), row.get("target")
        options = _options(doc, row, filtered)
        accuracy = number(row.get("acc")).value if not isinstance(row.get("acc"), str) else graded(row["acc"], binary=True).number.value
        choice = lm_choices.choice(filtered, target, options, accuracy, mutual="acc_mutual_info" in row)
        asked = _text(doc, row)
        if choice is not None and (options is None or len(options) != len(choice.scores)):
            options = None
        stored = options_text(options) if options else None
        label = metric if metric is None or filtered_by in {None, "none"} else f"{metric},{filtered_by}"
        response, prediction = (None, None) if choice is not None else (_said(row.get("resps")), _said(filtered))
        answer = {
            "correct": None if verdict is None else verdict.correct,
            "score": None if verdict is None else verdict.number.value,
            "special": None if verdict is None else verdict.number.special,
            "score_rule": label,
            "response": response if response is not None else prediction,
            "prediction": prediction if prediction is not None and (len(prediction) <= SHORT_ANSWER or prediction != response) else None,
            "gold": choice.gold_text if choice is not None and choice.gold else text(target),
            "text": asked,
            "options": stored,
            "n_options": len(choice.scores) if choice is not None else len(options) if options else None,
            "content_hash": None if asked is None else hashed(asked, stored),
        }
        if choice is not None:
            answer |= {"option_scores": json_text(choice.scores), "p_gold": choice.p_gold, "logit_prediction": choice.best}
        return answer, scorers, None if choice is None else choice.problem

    def _scores(self, row: Mapping[str, Any]) -> tuple[str | None, list[tuple[str, Number]]]:
        """The primary metric, and the other metrics of the row."""
        names = _metric_names(row)
        ordered = [name for name in self._listed if name in names] or sorted(names, key=_preference)
        metric = next((name for name in ordered if not has_other_scale(name) and self._is_share(row[name])), None)
        return metric, [pair for name in names if name != metric for pair in further(name, row[name])]

    def _is_share(self, value: Any) -> bool:
        return type(value) is float or (not isinstance(value, list | dict) and graded(value, binary=False).number != NOTHING)

    def _filters(self) -> _Filters:
        """A first pass over files that may hold several filters: it keeps nothing but scores."""
        known = self.results.filters(self.task)
        if len(known) == 1:
            return _Filters(primary=known[0])
        if not known and self.results.document:
            return _Filters()
        counts: Counter[Any] = Counter()
        labels: dict[str, None] = {}
        scores: dict[Any, list[tuple[str | None, list[tuple[str, Number]]]]] = defaultdict(list)
        same: dict[Any, tuple[Any, Any]] = {}
        varied, differing = False, False
        for block in row_blocks(self.path):
            for row in block.rows:
                key = _key(row)
                if key is None:
                    continue
                label = text(row.get("filter"))
                counts[key] += 1
                if label is not None:
                    labels[label] = None
                pair = (hash(json_text(row.get("resps"))), hash(json_text(row.get("filtered_resps"))))
                first = same.setdefault(key, pair)
                varied = varied or first[0] != pair[0]
                differing = differing or first[1] != pair[1]
                metrics = [pair for name in _metric_names(row) for pair in further(name, row[name])]
                scores[key].append((label, metrics))
        return _sorted_out(known, list(labels), counts, scores, answered_anew=varied or not differing)


def _sorted_out(
    known: list[str],
    labels: list[str],
    counts: Counter[Any],
    scores: dict[Any, list[tuple[str | None, list[tuple[str, Number]]]]],
    *,
    answered_anew: bool,
) -> _Filters:
    """What the first pass found: which rows are further filters of a document, which are further attempts."""
    if labels:
        primary = next((name for name in known if name in labels), labels[0])
        others: dict[tuple[Any, int], list[tuple[str, Number]]] = defaultdict(list)
        for key, rows in scores.items():
            turns: Counter[str | None] = Counter()
            for label, metrics in rows:
                if label != primary:
                    others[key, turns[label]] += [(f"{name},{label}", found) for name, found in metrics]
                turns[label] += 1
        return _Filters(primary=primary, others=dict(others))
    usual = max(counts.values(), default=1)
    if usual == 1 or (not known and answered_anew):
        return _Filters(primary=known[0] if known else None)
    names = tuple(known) if known else ("filter 1", *(f"filter {place}" for place in range(2, usual + 1)))
    attempts = {key: max(1, count // len(names)) for key, count in counts.items()}
    further_scores: dict[tuple[Any, int], list[tuple[str, Number]]] = defaultdict(list)
    for key, rows in scores.items():
        for place, (_, metrics) in enumerate(rows):
            turn = place // attempts[key]
            if 0 < turn < len(names):
                further_scores[key, place % attempts[key]] += [(f"{name},{names[turn]}", found) for name, found in metrics]
    return _Filters(primary=names[0], unlabelled=names, attempts=attempts, others=dict(further_scores))


def _is_primary(row: Mapping[str, Any], key: Any, occurrence: int, filters: _Filters) -> bool:
    """Rows are filter-major: without labels, a document's first rows are the primary filter's."""
    if filters.unlabelled:
        return occurrence < filters.attempts.get(key, 1)
    label = text(row.get("filter"))
    return label is None or filters.primary is None or label == filters.primary


def _key(row: Mapping[str, Any]) -> Any:
    """doc_id, the document's position in its split; a key stated outright goes before it, doc_hash comes after it."""
    for name in (*KEY_NAMES, "doc_id", "doc_hash"):
        value = row.get(name)
        if value is not None and value != "" and not isinstance(value, dict):
            return value if isinstance(value, int | str) and not isinstance(value, bool) else text(value)
    return None


def _metric_names(row: Mapping[str, Any]) -> list[str]:
    """The row's metrics: as it lists them since 0.4.7, else every other key."""
    listed = row.get("metrics")
    if isinstance(listed, list) and listed:
        return [name for name in listed if isinstance(name, str) and name in row]
    return [name for name in row if name not in WRITTEN and name not in CONVERTERS and name not in KEY_NAMES]


def _preference(name: str) -> int:
    return PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)


def _native(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Columns that rows carry under native names, and are no metric of theirs."""
    mentioned = set[str]().union(*rows)
    names = [name for name in CONVERTERS if name in mentioned]
    return {name: [None if name in _listed(row) else row.get(name) for row in rows] for name in names}


def _listed(row: Mapping[str, Any]) -> Any:
    return row.get("metrics") or ()


def _text(doc: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """The question: the document's own field, so that shots and templates do not change it, else the whole prompt."""
    for name in TEXT_FIELDS:
        value = doc.get(name)
        if isinstance(value, str) and value.strip():
            return value
    requests = _requests(row)
    prompt = requests[0][0] if requests and requests[0] else None
    return prompt if isinstance(prompt, str) and prompt.strip() else None


def _options(doc: Mapping[str, Any], row: Mapping[str, Any], filtered: Any) -> list[str] | None:
    """Options: the document's own field, else what the requests continue with where these differ."""
    for name in OPTION_FIELDS:
        value = doc.get(name)
        if isinstance(value, dict) and isinstance(value.get("text"), list):
            value = value["text"]
        if isinstance(value, list | dict) and (found := option_list(value)):
            return found
    if not isinstance(filtered, list) or len(filtered) < 2:
        return None
    told = [one[1] for one in _requests(row)[: len(filtered)] if len(one) > 1 and isinstance(one[1], str)]
    return [one.strip() for one in told] if len(told) == len(filtered) and len(set(told)) == len(told) else None


def _requests(row: Mapping[str, Any]) -> list[list[Any]]:
    """Arguments of the requests: lists up to 0.4.2, then objects."""
    arguments = row.get("arguments")
    if isinstance(arguments, dict):
        return [list(one.values()) for one in arguments.values() if isinstance(one, dict)]
    return [one for one in arguments if isinstance(one, list)] if isinstance(arguments, list) else []


def _said(responses: Any) -> str | None:
    """The text of the (first) response; log-likelihoods are no text."""
    inner = responses
    while isinstance(inner, list) and inner:
        if lm_choices.pairs(inner) or lm_choices.pairs([inner]):
            return None
        inner = inner[0]
    return inner if isinstance(inner, str) else None
