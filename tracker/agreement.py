"""How far two sources of labels agree: observed agreement, Cohen's kappa and the confusion table, computed in the session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.errors import UsageError

if TYPE_CHECKING:
    from tracker.lake import Session

LABELLED = """
WITH members AS (
    SELECT
        questions.id, coalesce(same_as_id, questions.id) AS question_id, same_as_id IS NOT NULL AS is_other_key, key,
        benchmarks.name AS benchmark
    FROM questions
    INNER JOIN benchmarks ON questions.benchmark_id = benchmarks.id
),

-- One value per question and source, by the rule of the views; a question that no run has asked is what its label calls it.
ranked AS (
    SELECT
        coalesce(cast(m.question_id AS VARCHAR), concat(l.benchmark, chr(31), l.question_key)) AS item,
        coalesce(m.benchmark, l.benchmark) AS benchmark,
        l.source,
        l.value,
        row_number() OVER (
            PARTITION BY coalesce(cast(m.question_id AS VARCHAR), concat(l.benchmark, chr(31), l.question_key)), l.source
            ORDER BY m.is_other_key ASC, m.key ASC, l.question_key ASC, l.benchmark ASC
        ) AS place
    FROM question_labels AS l
    LEFT JOIN members AS m ON l.question_id = m.id
    WHERE l.scheme = $scheme
),

labelled AS (SELECT item, benchmark, source, value FROM ranked WHERE place = 1),

counted AS (
    SELECT
        {benchmark} AS benchmark, a.source AS source_1, b.source AS source_2, a.value AS value_1, b.value AS value_2, count(*) AS n
    FROM labelled AS a
    INNER JOIN labelled AS b ON a.item = b.item AND {pair}
    GROUP BY ALL
)
"""
CONFUSION = "SELECT * FROM counted ORDER BY ALL"
PAIRS = """,

-- Chance agreement: the sum over values of the product of both sources' shares.
rows_of AS (SELECT benchmark, source_1, source_2, value_1 AS value, sum(n) AS n FROM counted GROUP BY ALL),

columns_of AS (SELECT benchmark, source_1, source_2, value_2 AS value, sum(n) AS n FROM counted GROUP BY ALL),

chance AS (
    SELECT r.benchmark, r.source_1, r.source_2, sum(cast(r.n AS DOUBLE) * c.n) AS products
    FROM rows_of AS r
    INNER JOIN columns_of AS c
        ON r.benchmark IS NOT DISTINCT FROM c.benchmark AND r.source_1 = c.source_1 AND r.source_2 = c.source_2 AND r.value = c.value
    GROUP BY ALL
),

totals AS (
    SELECT benchmark, source_1, source_2, sum(n) AS n, coalesce(sum(n) FILTER (value_1 = value_2), 0) AS agreeing
    FROM counted
    GROUP BY ALL
)

SELECT
    t.benchmark, t.source_1, t.source_2,
    cast(t.n AS BIGINT) AS n,
    cast(t.agreeing AS BIGINT) AS agreeing,
    t.agreeing / t.n AS agreement,
    coalesce(c.products, 0) / (cast(t.n AS DOUBLE) * t.n) AS chance,
    CASE
        WHEN coalesce(c.products, 0) < cast(t.n AS DOUBLE) * t.n
            THEN (t.agreeing / t.n - coalesce(c.products, 0) / (cast(t.n AS DOUBLE) * t.n))
                / (1 - coalesce(c.products, 0) / (cast(t.n AS DOUBLE) * t.n))
    END AS kappa
FROM totals AS t
LEFT JOIN chance AS c ON t.benchmark IS NOT DISTINCT FROM c.benchmark AND t.source_1 = c.source_1 AND t.source_2 = c.source_2
ORDER BY t.benchmark, t.source_1, t.source_2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Rows of two tables.

    `pairs`: benchmark (null over all), source_1, source_2, n (questions that both label), agreeing, agreement (agreeing / n), chance, kappa.
    `confusion`: benchmark, source_1, source_2, value_1, value_2, n.
    """

    pairs: list[dict[str, Any]] = field(default_factory=list)
    confusion: list[dict[str, Any]] = field(default_factory=list)


def agreement(session: Session, scheme: str, between: tuple[str, str] | None = None, *, by_benchmark: bool = False) -> Agreement:
    """Agreement of each pair of sources of a scheme, or of the two that are named (the first gives the rows of the table).

    Over the questions that both label: with p the share of equal values and e what two independent sources with the same
    shares of values would reach, kappa = (p - e) / (1 - e); null where e is 1, since then one value is all there is.
    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20 (1960), 37-46.

    Raises UsageError for a scheme or a source without labels.
    """
    _require(session, scheme, between)
    given = {"scheme": scheme}
    pair = "a.source < b.source"
    if between is not None:
        given |= {"first": between[0], "second": between[1]}
        pair = "a.source = $first AND b.source = $second"
    labelled = LABELLED.format(benchmark="a.benchmark" if by_benchmark else "NULL::VARCHAR", pair=pair)
    return Agreement(pairs=_rows(session, labelled + PAIRS, given), confusion=_rows(session, labelled + CONFUSION, given))


def _require(session: Session, scheme: str, between: tuple[str, str] | None) -> None:
    known = _rows(
        session, "SELECT scheme, list(DISTINCT source ORDER BY source) AS sources FROM question_labels GROUP BY ALL ORDER BY ALL", {}
    )
    sources = {row["scheme"]: row["sources"] for row in known}
    if scheme not in sources:
        message = f"no labels of the scheme {scheme!r}"
        raise UsageError(message, hint=f"there are {', '.join(sources) or 'none; trackr labels import FILE brings them'}")
    for source in between or ():
        if source not in sources[scheme]:
            message = f"no labels of {scheme!r} from {source!r}"
            raise UsageError(message, hint=f"there are those of {', '.join(sources[scheme])}")
    if between is not None and between[0] == between[1]:
        message = f"{between[0]!r} agrees with itself"
        raise UsageError(message, hint="name two sources")


def _rows(session: Session, text: str, given: dict[str, str]) -> list[dict[str, Any]]:
    cursor = session.execute(text, given)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in session.rows(cursor)]
