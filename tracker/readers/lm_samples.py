"""The rows of one lmms-eval samples file as columns: a few hundred rows at a time, a column at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.batch import Refusal
from tracker.readers import lm_choices
from tracker.readers.lines import shorten
from tracker.readers.lm_rows import paused_collector
from tracker.readers.lm_rules import (
    NO_METRICS,
    PREDICTION_FIELDS,
    Rule,
    Verdict,
    graded,
    has_other_scale,
    is_binary,
    judged,
    predicted,
    rule_of,
    score_field,
)
from tracker.readers.lm_table import CHUNK_BYTES, CHUNK_ROWS, CONVERTERS, KEY_NAMES, Chunk, as_json_lists, hashed, options_text, tables
from tracker.readers.values import NOTHING, Number, json_text, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracker.readers.lm_results import Results
    from tracker.readers.lm_rows import Block

WRITTEN = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash", "input", "input_media"}
    | {"token_counts", "filter", "metrics"}
)
"""Keys of a row that are no metric."""
SHORT_ANSWER = 200
"""A filtered response up to this length is kept as the prediction."""
_NESTED = frozenset({"options", "option_scores"})
_OPTION = re.compile(r"^[ \t]*\(?([A-Z])[.):][ \t]+(.*?)[ \t]*$", re.MULTILINE)
_LEAD_IN = re.compile(r"\s*(?:The choices are listed below:|选项如下所示:|Options:|Choices:)\s*$")  # noqa: RUF001 - as MME-RealWorld-CN writes it
_KEPT_QUESTIONS = 20_000


class Question(NamedTuple):
    """What a prompt asks: options on lettered lines of their own are told from the text."""

    text: str | None
    options: str | None
    n_options: int | None
    content_hash: str | None


NO_QUESTION = Question(text=None, options=None, n_options=None, content_hash=None)
_QUESTIONS: dict[tuple[str, str, str], Question] = {}


def question_of(prompt: str, before: str = "", after: str = "") -> Question:
    """A prompt's question, remembered: the same questions occur in hundreds of runs."""
    known = _QUESTIONS.get((prompt, before, after))
    if known is None:
        if len(_QUESTIONS) >= _KEPT_QUESTIONS:
            _QUESTIONS.clear()
        known = _QUESTIONS[prompt, before, after] = _question(prompt, before, after)
    return known


def _question(prompt: str, before: str, after: str) -> Question:
    body = prompt.strip().removeprefix(before.strip()).removesuffix(after.strip()).strip()
    found = list(_OPTION.finditer(body))
    while found and "".join(one[1] for one in found) != "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(found)]:
        found.pop()
    if len(found) < 2:
        return Question(text=body, options=None, n_options=None, content_hash=hashed(body, None))
    asked = _LEAD_IN.sub("", body[: found[0].start()]).strip()
    options = options_text([one[2] for one in found])
    return Question(text=asked, options=options, n_options=len(found), content_hash=hashed(asked, options))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How rows with these names are read."""

    native: tuple[str, ...]
    metrics: tuple[str, ...]
    others: tuple[str, ...]
    rule: Rule | None


@dataclass
class Reading:
    """One samples file being read; what has been seen so far decides at the end whether the run is complete."""

    path: str
    task: str
    results: Results
    seen: set[Any] = field(default_factory=set)
    documents: set[Any] = field(default_factory=set)
    truncated: bool = False
    damage: str | None = None
    _plans: dict[frozenset[str], _Plan] = field(default_factory=dict)

    def parts(self, blocks: Iterator[Block]) -> Iterator[Refusal | dict[str, Any]]:
        """Refusals, and the tables of bounded chunks."""
        more = True
        while more:
            refusals: list[Refusal] = []
            with paused_collector():
                made, more = self._chunk(blocks, refusals)
            yield from refusals
            if made is not None:
                yield made

    def _chunk(self, blocks: Iterator[Block], refusals: list[Refusal]) -> tuple[dict[str, Any] | None, bool]:
        """The tables of the next chunk, and whether more may follow."""
        chunk, size = Chunk(), 0
        for block in blocks:
            refusals += block.refusals
            self.truncated = self.truncated or block.truncated
            size += block.size
            if block.rows:
                refusals += self._take(block, chunk)
            if len(chunk.keys) >= CHUNK_ROWS or size > CHUNK_BYTES:
                return self._made(chunk, refusals), True
        return self._made(chunk, refusals), False

    def reason(self, expected: int | None) -> str | None:
        """Why the run is partial, if it is."""
        if self.damage:
            return self.damage
        if self.truncated:
            return "samples file is cut off"
        if expected is not None and len(self.documents) < expected:
            return f"{len(self.documents)} of {expected} questions"
        return None

    def _made(self, chunk: Chunk, refusals: list[Refusal]) -> dict[str, Any] | None:
        if not chunk.keys:
            return None
        made = tables(chunk, self.path, self.seen)
        refusals += made.refusals
        return {"records": made.records, "questions": made.questions, "labels": made.labels, "record_scores": made.record_scores}

    def _take(self, block: Block, chunk: Chunk) -> list[Refusal]:
        """Append a block's rows to the chunk."""
        shapes = list(map(tuple, block.rows))
        layouts = set(shapes)
        names = frozenset().union(*layouts)
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = self._plan(names, block.rows)
        rows, lines = block.rows, block.lines
        column = _columns(rows, layouts)
        metric, entries = _entries(rows, plan, column)
        keys = self._keys(plan, column, entries)
        refused = []
        if None in keys:
            refused = self._unkeyed(block, keys, plan)
            kept = [place for place, key in enumerate(keys) if key is not None]
            rows, lines, keys, entries, metric, shapes = (
                [those[place] for place in kept] for those in (rows, lines, keys, entries, metric, shapes)
            )
            if not rows:
                return refused
            column = _columns(rows, set(shapes))
        own = self._judge(plan, metric, entries)
        own.update(_described(plan, shapes, entries, column))
        own.update(_answers(entries, column, len(rows)))
        own.update(self._asked(column))
        refused += self._choices(own, rows, lines, column)
        self.documents.update(_hashable(column("doc_id")) if "doc_id" in names else keys)
        given = {name: column(name) for name in plan.native}
        if "option_scores" in given and (made := as_json_lists(given["option_scores"])) is not None:
            own["option_scores"] = made
            del given["option_scores"]
        start = len(chunk.keys)
        chunk.add(keys, lines, own, given)
        if plan.others:
            chunk.scorers.extend(_further(rows, plan.others, start))
        return refused

    def _plan(self, names: frozenset[str], rows: Sequence[Mapping[str, Any]]) -> _Plan:
        native = tuple(name for name in CONVERTERS if name in names and (name in _NESTED or not _is_nested(rows, name)))
        free = [
            name
            for row in rows
            for name in row
            if name not in WRITTEN and name not in native and name not in NO_METRICS and name not in KEY_NAMES
        ]
        loose = [name for name in dict.fromkeys(free) if _is_metric(rows, name)]
        rule = rule_of(self.task, loose)
        if rule is not None:
            return _Plan(native, tuple(one for one in rule.metrics if one in names), (), rule)
        listed = [name for name in self.results.metrics(self.task) if name in loose and not has_other_scale(name)]
        primary = listed or [name for name in loose if self._may_lead(name)]
        first = tuple(primary[:1])
        return _Plan(native, first, tuple(name for name in loose if name not in first), None)

    def _may_lead(self, name: str) -> bool:
        """Whether a metric that no configuration lists can stand for the answer's credit."""
        better = self.results.of_task("higher_is_better", self.task)
        lower = isinstance(better, dict) and better.get(name) is False
        return not lower and not has_other_scale(name)

    def _keys(self, plan: _Plan, column: Callable[[str], list[Any]], entries: list[Any]) -> list[Any]:
        if plan.rule is not None and plan.rule.key is not None:
            try:
                keys = list(map(itemgetter(plan.rule.key), entries))
            except (KeyError, TypeError):
                keys = [entry.get(plan.rule.key) if isinstance(entry, dict) else None for entry in entries]
        else:
            keys = column("doc_id")
        for name in KEY_NAMES:
            stated = column(name)
            if stated.count(None) < len(stated):
                keys = [key if one is None or isinstance(one, dict) else one for key, one in zip(keys, stated, strict=True)]
                break
        kinds = set(map(type, keys))
        if kinds in ({int}, {str}):
            return [key if key != "" else None for key in keys] if "" in keys else keys
        return [None if key is None or key == "" else text(key) for key in keys]

    def _unkeyed(self, block: Block, keys: list[Any], plan: _Plan) -> list[Refusal]:
        wanted = "doc_id" if plan.rule is None or plan.rule.key is None else f"{plan.rule.metrics[0]}.{plan.rule.key}"
        reason = f"no {wanted}, so that the question is not known (correct or delete the line)"
        rows = zip(block.lines, block.rows, keys, strict=True)
        return [Refusal(file=self.path, line=line, reason=reason, text=shorten(json_text(row))) for line, row, key in rows if key is None]

    def _judge(self, plan: _Plan, metric: list[str | None], entries: list[Any]) -> dict[str, list[Any]]:
        """correct, score, special and score_rule of every row."""
        if not plan.metrics:
            return {}
        same = metric[0] if len(set(metric)) == 1 else None
        score_key = text(self.results.task_config(self.task).get("score_key"))
        quick = _quickly(same, entries, plan.rule, score_key) if same is not None or plan.rule is not None else None
        if quick is not None:
            correct, scores, says = quick
            rules = [says] * len(scores) if same is not None else [plan.rule.named(name) if plan.rule and name else None for name in metric]
            return {"correct": correct, "score": scores, "score_rule": rules}
        verdicts = [
            Verdict() if name is None else judged(entry, name, plan.rule, score_key) for name, entry in zip(metric, entries, strict=True)
        ]
        numbers = [one.number for one in verdicts]
        return {
            "correct": [one.correct for one in verdicts],
            "score": [one.value for one in numbers],
            "special": [one.special for one in numbers],
            "score_rule": [_said(name, entry, plan.rule, score_key) for name, entry in zip(metric, entries, strict=True)],
        }

    def _asked(self, column: Callable[[str], list[Any]]) -> dict[str, list[Any]]:
        """Text, options, number of options and content hash out of the prompt."""
        before, after = self._wrapping
        prompts = column("input")
        if set(map(type, prompts)) != {str}:
            prompts = [text(_innermost(one)) for one in prompts]
        known = _QUESTIONS
        try:
            found = [known[one, before, after] for one in prompts]
        except KeyError:
            found = [NO_QUESTION if one is None else question_of(one, before, after) for one in prompts]
        return dict(zip(Question._fields, map(list, zip(*found, strict=True)), strict=True))

    @cached_property
    def _wrapping(self) -> tuple[str, str]:
        """The prompts that the task puts before and after its questions."""
        given = self.results.task_config(self.task).get("lmms_eval_specific_kwargs")
        given = given if isinstance(given, dict) else {}
        return text(given.get("pre_prompt")) or "", text(given.get("post_prompt")) or ""

    def _choices(
        self, own: dict[str, list[Any]], rows: Sequence[Mapping[str, Any]], lines: Sequence[int], column: Callable[[str], list[Any]]
    ) -> list[Refusal]:
        """Log-likelihoods of multiple choice tasks."""
        filtered = column("filtered_resps")
        first = filtered[0]
        if not (isinstance(first, list) and len(first) > 1 and lm_choices.pairs(first)):
            return []
        correct = own.get("correct") or [None] * len(rows)
        found = [
            lm_choices.choice(one, row.get("target"), None, None if right is None else float(right))
            for one, row, right in zip(filtered, rows, correct, strict=True)
        ]
        own["option_scores"] = [None if one is None else json_text(one.scores) for one in found]
        own["p_gold"] = [None if one is None else one.p_gold for one in found]
        own["logit_prediction"] = [None if one is None else one.best for one in found]
        own["gold"] = [
            gold if one is None or one.gold_text is None else one.gold_text for one, gold in zip(found, own["gold"], strict=True)
        ]
        own["n_options"] = [count if one is None else len(one.scores) for one, count in zip(found, own["n_options"], strict=True)]
        return [
            Refusal(file=self.path, line=line, reason=one.problem)
            for one, line in zip(found, lines, strict=True)
            if one is not None and one.problem
        ]


def _columns(rows: Sequence[dict[str, Any]], layouts: set[tuple[str, ...]]) -> Callable[[str], list[Any]]:
    """A column by name: quickly where every row has it."""
    common = frozenset(next(iter(layouts))).intersection(*layouts)
    some = frozenset().union(*layouts)

    def column(name: str) -> list[Any]:
        if name in common:
            return list(map(itemgetter(name), rows))
        return [row.get(name) for row in rows] if name in some else [None] * len(rows)

    return column


def _entries(rows: Sequence[Mapping[str, Any]], plan: _Plan, column: Callable[[str], list[Any]]) -> tuple[list[str | None], list[Any]]:
    """The metric that judges each row, and its value there."""
    if not plan.metrics:
        return [None] * len(rows), [None] * len(rows)
    if len(plan.metrics) == 1:
        entries = column(plan.metrics[0])
        if None not in entries:
            return [plan.metrics[0]] * len(rows), entries
    names = [next((name for name in plan.metrics if row.get(name) is not None), None) for row in rows]
    return names, [None if name is None else row[name] for name, row in zip(names, rows, strict=True)]


def _quickly(metric: str | None, entries: list[Any], rule: Rule | None, score_key: str | None) -> tuple[list[Any], list[Any], str] | None:
    """Verdicts of rows that all look alike; None where they do not."""
    kinds = set(map(type, entries))
    says = metric or ""
    binary = metric is not None and is_binary(metric)
    if kinds == {dict}:
        if rule is not None and rule.judge is not None:
            return _remembered(entries, rule)
        name = rule.field if rule is not None else score_field(entries[0], score_key)
        if name is None:
            return None
        try:
            entries = list(map(itemgetter(name), entries))
        except KeyError:
            return None
        binary = binary or rule is not None or is_binary(name)
        says = rule.named(says) if rule is not None else f"{metric}.{name}"
        kinds = set(map(type, entries))
    if not kinds <= {int, float}:
        return None
    values = set(entries)
    if values <= {0, 1}:
        return ([one == 1 for one in entries] if binary else [None] * len(entries)), entries, says
    if binary or not all(-1e300 < one < 1e300 for one in values):
        return None
    return [None] * len(entries), entries, says


def _remembered(entries: list[Any], rule: Rule) -> tuple[list[Any], list[Any], str] | None:
    """Verdicts that depend on few fields: each combination is judged once."""
    if rule.judge is None or not rule.judged_on:
        return None
    try:
        cases = list(map(itemgetter(*rule.judged_on), entries))
        known = {case: rule.judge(dict(zip(rule.judged_on, case, strict=True))) for case in set(cases)}
    except (KeyError, TypeError):
        return None
    correct = [known[case] for case in cases]
    return correct, [None if one is None else float(one) for one in correct], rule.named("")


def _said(metric: str | None, entry: Any, rule: Rule | None, score_key: str | None) -> str | None:
    if metric is None:
        return None
    if rule is not None:
        return rule.named(metric)
    name = score_field(entry, score_key) if isinstance(entry, dict) else None
    return metric if name is None else f"{metric}.{name}"


def _described(plan: _Plan, shapes: list[tuple[str, ...]], entries: list[Any], column: Callable[[str], list[Any]]) -> dict[str, list[Any]]:
    """Gold and categories."""
    made: dict[str, list[Any]] = {"gold": _texts(column("target"))}
    rule = plan.rule
    media = column("input_media")
    if media.count(None) < len(media):
        made["image_key"] = [text(one[0]) if isinstance(one, list) and len(one) == 1 else None for one in media]
    if rule is not None and rule.category_is_metric:
        taken = {*WRITTEN, *plan.native, *plan.metrics, *NO_METRICS, *KEY_NAMES}
        named = {shape: next((name for name in shape if name not in taken), None) for shape in set(shapes)}
        made["category"] = [named[shape] for shape in shapes]
    if not entries or not isinstance(entries[0], dict):
        return made
    fields = {
        "subcategory": (rule.subcategory if rule is not None else _first_of(entries[0], ("sub_category", "l2_category", "subdomain")),)
    }
    if rule is None or not rule.category_is_metric:
        fields["category"] = rule.category if rule is not None else ("category",)
    if rule is not None and rule.image is not None:
        fields["image_key"] = (rule.image,)
    for target, names in fields.items():
        if all(name is not None and name in entries[0] for name in names):
            made[target] = _joined(entries, names)
    return made


def _first_of(entry: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in entry), None)


def _joined(entries: list[Any], names: tuple[Any, ...]) -> list[Any]:
    if len(names) == 1:
        return _texts([entry.get(names[0]) if isinstance(entry, dict) else None for entry in entries])
    cases = [tuple(text(entry.get(name)) for name in names) if isinstance(entry, dict) else () for entry in entries]
    known = {case: "/".join(one for one in case if one) or None for case in set(cases)}
    return [known[case] for case in cases]


def _answers(entries: list[Any], column: Callable[[str], list[Any]], size: int) -> dict[str, list[Any]]:
    """Response, prediction and token counts."""
    filtered = _responses(column("filtered_resps"))
    whole_text = column("resps")
    if whole_text.count(None) == size:
        response = filtered
    else:
        response = [old if new is None else new for new, old in zip(_responses(whole_text), filtered, strict=True)]
    made = {"response": response, "prediction": _predictions(entries, filtered)}
    counts = column("token_counts")
    if counts.count(None) < size:
        for name, source in (("prompt_tokens", "input_tokens"), ("generated_tokens", "output_tokens")):
            found = _counts(counts, source)
            made[name] = found if set(map(type, found)) <= {int, type(None)} else [whole(one) for one in found]
    return made


def _counts(counts: list[Any], name: str) -> list[Any]:
    """Tokens of answers that took one request; several requests have no one count."""
    try:
        if set(map(len, counts)) == {1}:
            return [one[name] for (one,) in counts]
    except (KeyError, TypeError):
        pass
    single = [one[0] if isinstance(one, list) and len(one) == 1 else None for one in counts]
    return [one.get(name) if isinstance(one, dict) else None for one in single]


def _predictions(entries: list[Any], filtered: list[str | None]) -> list[str | None]:
    first = entries[0]
    if isinstance(first, dict):
        name = _first_of(first, PREDICTION_FIELDS)
        if name is not None:
            found = [entry.get(name) if isinstance(entry, dict) else None for entry in entries]
            return (
                found
                if set(map(type, found)) <= {str, type(None)}
                else [predicted(one) if isinstance(one, dict) else None for one in entries]
            )
    if None not in filtered and max(map(len, filtered)) <= SHORT_ANSWER:  # type: ignore[arg-type] # no None is left
        return filtered
    return [None if one is None or len(one) > SHORT_ANSWER else one for one in filtered]


def _responses(values: list[Any]) -> list[str | None]:
    """Text of responses: a text, or lists around it; several become JSON; log-likelihoods are no text."""
    kinds = set(map(type, values))
    if kinds <= {str, type(None)}:
        return values
    return [one if isinstance(one, str) else _response(one) for one in values]


def _response(value: Any) -> str | None:
    inner = _innermost(value)
    if isinstance(inner, list) and (not inner or lm_choices.pairs(inner) or lm_choices.pairs([inner])):
        return None
    return text(inner)


def _innermost(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _texts(values: list[Any]) -> list[str | None]:
    return values if set(map(type, values)) <= {str, type(None)} else [text(one) for one in values]


def _further(rows: Sequence[Mapping[str, Any]], names: Sequence[str], start: int) -> Iterator[tuple[int, str, Number]]:
    """Every other metric of a row: a number, the score inside an object, or a short list of numbers."""
    for place, row in enumerate(rows, start):
        for name in names:
            value = row.get(name)
            if value is not None:
                yield from ((place, scorer, found) for scorer, found in further(name, value))


def further(name: str, value: Any) -> Iterator[tuple[str, Number]]:
    """A metric's value under its name; the parts of a list of numbers under name[0], name[1], ..."""
    if isinstance(value, dict):
        inner = score_field(value)
        value = value.get(inner) if inner is not None else None
    if isinstance(value, list):
        parts = [graded(one, binary=False).number for one in value[:16] if not isinstance(one, list | dict)]
        yield from ((f"{name}[{place}]", one) for place, one in enumerate(parts) if one != NOTHING)
        return
    found = graded(value, binary=False).number
    if found != NOTHING:
        yield name, found


def _is_nested(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return isinstance(next((found for row in rows if (found := row.get(name)) is not None), None), dict)


def _is_metric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    value = next((found for row in rows if (found := row.get(name)) is not None), None)
    return isinstance(value, dict | list) or graded(value, binary=False).number != NOTHING


def _hashable(values: list[Any]) -> list[Any]:
    return values if set(map(type, values)) <= {int, str, type(None)} else [text(one) for one in values]
