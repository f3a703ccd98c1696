"""Questions: one row per benchmark and key, described by every run that asks it.

Where sources disagree about a question, each attribute keeps the value that sorts first: a rule without a
memory, so that any order of ingest ends in the same description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tracker.database import bulk
from tracker.schema import Question, QuestionLabel, Record, Trajectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
ATTRIBUTES: tuple[str, ...] = (
    "content_hash",
    "hash_repeats",
    "image_key",
    "pair_key",
    "text",
    "options",
    "gold",
    "n_options",
    "task",
    "category",
    "subcategory",
    "image_width",
    "image_height",
)
HASHES = frozenset({"content_hash", "hash_repeats"})
"""Attributes that decide which keys are one question."""
STATED = ("gold", "n_options", "options", "task", "category", "subcategory", "image_key", "pair_key")
"""Attributes about which sources should agree; texts may differ by a prompt around them."""
IN_LIMIT = 500


class Questions:
    """Question ids by benchmark and key, and the means to merge descriptions; valid while no one else writes."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._ids: dict[int, dict[str, int]] = {}
        self._changed: dict[int, dict[str, Any]] = {}
        self._facts_seen: set[tuple[int, str]] = set()
        self._first_facts: dict[int, pa.Table] = {}
        self._told: dict[int, list[pa.Table]] = {}
        self._id_arrays: dict[int, tuple[pa.ChunkedArray, pa.Array]] = {}
        self.disputed: set[int] = set()
        """Questions about which sources disagree."""
        self.rehashed: set[int] = set()
        """Benchmarks whose content hashes changed."""

    def tell(self, benchmark_id: int, facts: pa.Table, facts_digest: str) -> None:
        """Take what a run says about its questions; `settle` merges it in."""
        if (benchmark_id, facts_digest) not in self._facts_seen:
            news = self._news(benchmark_id, facts)
            if news.num_rows:
                self._told.setdefault(benchmark_id, []).append(news)
            self._facts_seen.add((benchmark_id, facts_digest))
            self._first_facts.setdefault(benchmark_id, facts)

    def settle(self) -> None:
        """Merge and write what runs told."""
        for benchmark_id, told in self._told.items():
            self.merge_rows(benchmark_id, [row for facts in told for row in facts.to_pylist()])
        self._told.clear()
        self.write_changes()

    def ids_of(self, benchmark_id: int, keys: pa.ChunkedArray) -> pa.Array:
        """Ids of keys that were settled; runs mostly ask the same questions in the same order."""
        known = self._id_arrays.get(benchmark_id)
        if known is None or not known[0].equals(keys):
            ids = self._benchmark(benchmark_id)
            known = self._id_arrays[benchmark_id] = (keys, pa.array([ids[key] for key in keys.to_pylist()], pa.int64()))
        return known[1]

    def _news(self, benchmark_id: int, facts: pa.Table) -> pa.Table:
        """The rows that may say more than the first run of the benchmark said; compared by column, since runs mostly repeat it."""
        first = self._first_facts.get(benchmark_id)
        if first is None or not first.column("key").equals(facts.column("key")):
            return facts
        says_more = pa.repeat(pa.scalar(value=False), facts.num_rows)
        for name in ATTRIBUTES:
            value = facts.column(name).combine_chunks()
            if value.equals(first.column(name).combine_chunks()):
                continue
            same = pc.fill_null(pc.equal(value, first.column(name).combine_chunks()), fill_value=False)
            says_more = pc.or_(says_more, pc.and_(pc.is_valid(value), pc.invert(same)))
        return facts.filter(says_more)

    def merge_rows(self, benchmark_id: int, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Insert new keys, complete old ones; returns ids by key."""
        ids = self._benchmark(benchmark_id)
        merged: dict[str, dict[str, Any]] = {}
        disputed: set[str] = set()
        for row in rows:
            first = merged.setdefault(row["key"], {"key": row["key"], **{name: row.get(name) for name in ATTRIBUTES}})
            if _disagree(first, row):
                disputed.add(row["key"])
            first.update(_differences(first, row))
        known = [row for row in merged.values() if row["key"] in ids]
        stored = self._stored([ids[row["key"]] for row in known])
        for row in known:
            self._complete(benchmark_id, ids[row["key"]], stored[ids[row["key"]]], row)
        if len(known) < len(merged):
            self._insert(benchmark_id, [row for row in merged.values() if row["key"] not in ids])
            self.rehashed.add(benchmark_id)
        self.disputed.update(ids[key] for key in disputed)
        return {key: ids[key] for key in merged}

    def _complete(self, benchmark_id: int, row_id: int, stored: dict[str, Any], row: Mapping[str, Any]) -> None:
        """Merge what a further source says into a stored question."""
        if _disagree(stored, row):
            self.disputed.add(row_id)
        update = _differences(stored, row)
        if update:
            stored.update(update)
            self._changed[row_id] = stored
            if not HASHES.isdisjoint(update):
                self.rehashed.add(benchmark_id)

    def write_changes(self) -> None:
        """Write what was merged into questions that were stored before."""
        if self._changed:
            bound = [{"b_id": row_id, **{f"b_{name}": value for name, value in row.items()}} for row_id, row in self._changed.items()]
            assignments: dict[str, Any] = {name: sa.bindparam(f"b_{name}") for name in ATTRIBUTES}
            table = bulk.table("questions")
            self.connection.execute(sa.update(table).where(table.c.id == sa.bindparam("b_id")).values(assignments), bound)
            self._changed.clear()

    def join_keys(self) -> set[int]:
        """Join keys that are the same question (`same_as_id`); returns the benchmarks where a link changed."""
        self.write_changes()
        changed = {benchmark_id for benchmark_id in sorted(self.rehashed) if _join_benchmark(self.connection, benchmark_id)}
        self.rehashed.clear()
        return changed

    def _insert(self, benchmark_id: int, new: list[Mapping[str, Any]]) -> None:
        row_ids = bulk.new_ids(self.connection, "questions", len(new))
        described = [
            {
                "id": row_id,
                "benchmark_id": benchmark_id,
                "key": row["key"],
                **{name: row.get(name) for name in ATTRIBUTES},
                "hash_repeats": bool(row.get("hash_repeats")),
            }
            for row_id, row in zip(row_ids, new, strict=True)
        ]
        self.connection.execute(sa.insert(Question), described)
        self._ids[benchmark_id].update(zip((row["key"] for row in new), row_ids, strict=True))

    def _stored(self, row_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """What is stored of some questions; looked up when it matters, since keeping it all would cost memory by the question."""
        if not self._changed.keys().isdisjoint(row_ids):
            self.write_changes()
        columns = [getattr(Question, name) for name in ATTRIBUTES]
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(row_ids), IN_LIMIT):
            query = sa.select(Question.id, *columns).where(Question.id.in_(row_ids[start : start + IN_LIMIT]))
            found.update((row["id"], {name: row[name] for name in ATTRIBUTES}) for row in self.connection.execute(query).mappings())
        return found

    def _benchmark(self, benchmark_id: int) -> dict[str, int]:
        if benchmark_id not in self._ids:
            rows = self.connection.execute(sa.select(Question.key, Question.id).where(Question.benchmark_id == benchmark_id))
            self._ids[benchmark_id] = dict(rows.all())
        return self._ids[benchmark_id]


def _disagree(stored: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether two descriptions of a question contradict each other."""
    return any(row.get(name) is not None and stored[name] not in (None, row[name]) for name in STATED)


def _differences(stored: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """What a further source changes: fills what is null, and of two values keeps the one that sorts first."""
    changes: dict[str, Any] = {}
    for name in ATTRIBUTES:
        value = row.get(name)
        old = stored[name]
        if value is None or value == old:
            continue
        if name == "hash_repeats":
            if value and not old:
                changes[name] = True
        elif old is None or value < old:
            changes[name] = value
    return changes


def _join_benchmark(connection: sa.Connection, benchmark_id: int) -> bool:
    """Set `same_as_id` from content hashes: keys that share one, where no run has it twice, are one question."""
    columns = (Question.id, Question.key, Question.content_hash, Question.hash_repeats, Question.same_as_id)
    rows = connection.execute(sa.select(*columns).where(Question.benchmark_id == benchmark_id)).all()
    groups: dict[str, list[Any]] = {}
    for row in rows:
        if row.content_hash is not None:
            groups.setdefault(row.content_hash, []).append(row)
    target: dict[int, int | None] = {row.id: None for row in rows}
    for group in groups.values():
        if len(group) > 1 and not any(row.hash_repeats for row in group):
            first = min(group, key=lambda row: row.key)
            target.update({row.id: first.id for row in group if row.id != first.id})
    changes = [{"b_id": row.id, "b_same": target[row.id]} for row in rows if target[row.id] != row.same_as_id]
    if changes:
        table = bulk.table("questions")
        connection.execute(sa.update(table).where(table.c.id == sa.bindparam("b_id")).values(same_as_id=sa.bindparam("b_same")), changes)
    return bool(changes)


def solo_questions(connection: sa.Connection, run_ids: Sequence[int]) -> list[int]:
    """Questions that no other run asks."""
    other = sa.alias(bulk.table("records"))
    elsewhere = sa.exists().where(other.c.question_id == Record.question_id, other.c.run_id.not_in(run_ids))
    return list(connection.execute(sa.select(Record.question_id).where(Record.run_id.in_(run_ids), ~elsewhere).distinct()).scalars())


def forget(connection: sa.Connection, question_ids: Sequence[int]) -> None:
    """Drop what runs said about questions, before the only run that asks them says it anew."""
    for start in range(0, len(question_ids), IN_LIMIT):
        chosen = question_ids[start : start + IN_LIMIT]
        empty = {name: (False if name == "hash_repeats" else None) for name in ATTRIBUTES}
        connection.execute(sa.update(Question).where(Question.id.in_(chosen)).values(empty))
        connection.execute(sa.delete(QuestionLabel).where(QuestionLabel.question_id.in_(chosen), QuestionLabel.source == "native"))


class Pruned(NamedTuple):
    """Benchmarks that lost questions, and those of them where a question was joined to a lost one."""

    benchmarks: set[int]
    unjoined: set[int]


def prune_questions(connection: sa.Connection) -> Pruned:
    """Remove questions that no record answers any more, with what runs said of them; labels of files wait for the question to come back.

    The keys of their benchmarks must be joined anew.
    """
    unused = sa.select(Question.id, Question.benchmark_id).where(~sa.exists().where(Record.question_id == Question.id))
    rows = connection.execute(unused).all()
    gone = [row.id for row in rows]
    unjoined: set[int] = set()
    for start in range(0, len(gone), IN_LIMIT):
        chosen = gone[start : start + IN_LIMIT]
        unjoined |= set(connection.execute(sa.select(Question.benchmark_id).where(Question.same_as_id.in_(chosen)).distinct()).scalars())
        connection.execute(sa.update(Question).where(Question.same_as_id.in_(chosen)).values(same_as_id=None))
        connection.execute(sa.delete(QuestionLabel).where(QuestionLabel.question_id.in_(chosen), QuestionLabel.source == "native"))
        connection.execute(sa.update(QuestionLabel).where(QuestionLabel.question_id.in_(chosen)).values(question_id=None))
        connection.execute(sa.delete(Trajectory).where(Trajectory.question_id.in_(chosen)))
        connection.execute(sa.delete(Question).where(Question.id.in_(chosen)))
    return Pruned({row.benchmark_id for row in rows}, unjoined)
