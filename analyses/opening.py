"""What every analysis does around its numbers: open the cohort, and wrap the answer with where it came from."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyses.cohort import cohort_sql, materialised, origin, threads
from analyses.conditions import each_answer_once, inspect
from analyses.executor import cores
from analyses.result import Charts, Cohort, Result
from tracker.errors import AnalysisError
from tracker.version import version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analyses.parameters import AnalysisParameters
    from analyses.result import FittedLaw, Table
    from analyses.session import StarSession


EMPTY = "no scored answer in the cohort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A cohort that is materialised as the temporary table `cohort`."""

    session: StarSession
    analysis: str
    parameters: AnalysisParameters
    sql: str
    started: float

    def result(
        self,
        *,
        rows: int,
        digest: str,
        headline: Mapping[str, Any],
        tables: Mapping[str, Table],
        charts: Charts | None = None,
        warnings: Sequence[str] = (),
        fits: Sequence[FittedLaw] = (),
    ) -> Result:
        """The answer with its cohort, versions and seconds."""
        engine = self.session.connection.execute("select version()").fetchone()
        return Result(
            analysis=self.analysis,
            parameters=self.parameters.model_dump(),
            cohort=Cohort(sql=self.sql, rows=rows, digest=digest),
            headline=headline,
            tables=tables,
            charts=charts or Charts(),
            warnings=tuple(dict.fromkeys(warnings)),
            fits=tuple(fits),
            seconds=time.perf_counter() - self.started,
            database=str(self.session.uuid),
            data_version=int(self.session.data_version),
            code_version=version(),
            engine_version=str(engine[0]) if engine else "",
            seed=self.parameters.seed,
        )


@contextmanager
def opened(session: StarSession, analysis: str, parameters: AnalysisParameters, *, cohort: str, columns: Sequence[str]) -> Iterator[Opened]:
    """Materialise the cohort of `analyses/cohorts/<cohort>.sql`, narrowed or replaced by the user, for as long as the `with` lasts.

    Raises QueryError for SQL of the user that fails, is more than it may be, or gives an answer twice.
    """
    started = time.perf_counter()
    sql = cohort_sql(cohort, parameters)
    session.ensure_files()
    inspect(session.connection, parameters)
    with (
        threads(session.connection, parameters.workers and min(parameters.workers, cores())),
        materialised(session.connection, sql, parameters.model_dump(), columns=columns, where=origin(parameters)),
    ):
        if parameters.cohort is not None:
            each_answer_once(session.connection)
        yield Opened(session=session, analysis=analysis, parameters=parameters, sql=sql, started=started)


def nothing(parameters: AnalysisParameters, message: str = EMPTY, *, hint: str | None = None) -> AnalysisError:
    """The error of a cohort that leaves nothing to analyse; without a hint it is one about the cohort."""
    narrowed = "trackr info counts what is there" + ("; look at --where and --cohort" if parameters.where or parameters.cohort else "")
    ingested = message != EMPTY or parameters.where or parameters.cohort
    return AnalysisError(message, hint=hint or (narrowed if ingested else "trackr ingest PATH"))
