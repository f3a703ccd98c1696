"""Measure trackr's targets on the full simulated study, each against its yardstick in the same run; prints JSON.

    make bench                       everything but the ten times larger study
    make bench BENCH_ARGS=--large    that too (about 15 minutes and 4 GB more)
    make bench BENCH_ARGS=--many     and 2,000 small ingests (about 15 minutes more)
    make bench BENCH_ARGS=--long     and what resampling takes at length (about 15 minutes more)

Progress goes to stderr. Nothing here passes or fails: the figures stand beside their targets.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import sys
from statistics import median
from typing import TYPE_CHECKING, Any

from formats import format_figures, many_figures
from laws import law_figures
from measure import DATA, ROOT, best, fresh, python, run, seconds_of

if TYPE_CHECKING:
    from pathlib import Path


def main() -> None:
    """Run every measurement."""
    options = _options()
    DATA.mkdir(exist_ok=True)
    figures: dict[str, Any] = {"machine": _machine()}
    study = simulated(DATA / "full", scale=1.0)
    figures["study"] = {"megabytes": round(_size(study / "lmms_eval") / 1e6, 1), "records": _truth(study)}
    figures |= ingest_figures(study, baseline=not options.no_baseline)
    if not options.no_postgres:
        figures |= postgres_figures(study, figures["ingest_s"])
    figures |= reading_figures()
    if not options.no_formats:
        figures |= format_figures()
    if not options.no_laws:
        figures["laws"] = law_figures(long=options.long)
    if options.many:
        figures |= many_figures()
    if options.large:
        figures |= large_figures(figures["ingest_peak_mb (target < 600)"])
    print(json.dumps(figures, indent=2))


def simulated(folder: Path, *, scale: float) -> Path:
    """The study's run folders, written once."""
    if not (folder / "truth.json").exists():
        run("simulate", "--preset", "separable-law", "--scale", scale, "--out", folder, "--force")
    return folder


def ingest_figures(study: Path, *, baseline: bool) -> dict[str, Any]:
    """First and second ingest into SQLite, against a bare orjson pass and against json + to_sql."""
    orjson_s = min(python("orjson_pass.py", study).seconds for _ in range(3))
    first = min((run("ingest", study, "--db", fresh("sqlite") / "trackr.db", "-q") for _ in range(3)), key=lambda one: one.seconds)
    database = DATA / "sqlite" / "trackr.db"
    before = _fingerprint(database)
    second = min((run("ingest", study, "--db", database, "-q") for _ in range(3)), key=lambda one: one.seconds)
    figures: dict[str, Any] = {
        "orjson_pass_s": orjson_s,
        "ingest_s": first.seconds,
        "ingest_over_orjson (target <= 4)": first.seconds / orjson_s,
        "ingest_peak_mb (target < 600)": first.peak_mb,
        "second_ingest_s": second.seconds,
        "second_over_first (target < 0.1)": second.seconds / first.seconds,
        "second_wrote_to_database (target False)": _fingerprint(database) != before,
    }
    if baseline:
        to_sql = python("json_to_sql.py", study, fresh("to_sql") / "baseline.db")
        figures |= {"json_to_sql_s": to_sql.seconds, "json_to_sql_over_ingest (target >= 5)": to_sql.seconds / first.seconds}
    return figures


def postgres_figures(study: Path, sqlite_s: float) -> dict[str, Any]:
    """Ingest into a real PostgreSQL, with a lake of its own."""
    sys.path.insert(0, str(ROOT))
    from tests.conftest import running_postgres

    folder = fresh("postgres")
    with running_postgres(folder) as server:
        url = server.create()
        measured = run("ingest", study, "--db", url, "--lake", folder / "lake", "-q")
        again = server.create()
        shutil.rmtree(folder / "lake")
        measured = min(measured, run("ingest", study, "--db", again, "--lake", folder / "lake", "-q"), key=lambda one: one.seconds)
    return {
        "postgres_ingest_s": measured.seconds,
        "postgres_over_sqlite (target <= 2.5)": measured.seconds / sqlite_s,
        "postgres_peak_mb": measured.peak_mb,
    }


def reading_figures() -> dict[str, Any]:
    """Queries, export, analysis and start-up over what was ingested."""
    database = DATA / "sqlite" / "trackr.db"
    out = fresh("export") / "records.parquet"
    export = run("query", "select * from answers", "--db", database, "-o", out)
    lake_s, sqlite_s = cells(database)
    command = run("query", "select * from cells", "--db", database, "--format", "csv")
    ceiling = best(5, "analyze", "ceiling", "--cutoff", "0.2", "--db", database, "--no-save", "--json")
    return {
        "export_answers_s (target < 5)": export.seconds,
        "export_peak_mb (target < 300)": export.peak_mb,
        "export_mb": round(out.stat().st_size / 1e6, 1),
        "cells_lake_ms": lake_s * 1e3,
        "cells_sqlite_ms": sqlite_s * 1e3,
        "cells_sqlite_over_lake (target >= 20)": sqlite_s / lake_s,
        "cells_command_s": command.seconds,
        "analyze_ceiling_s (target < 3)": ceiling.seconds,
        "analyze_ceiling_peak_mb": ceiling.peak_mb,
        "help_s (target < 0.2)": best(10, "--help").seconds,
        "select_1_s (target < 1)": best(10, "query", "select 1", "--db", database).seconds,
    }


def large_figures(peak_mb: float) -> dict[str, Any]:
    """Memory of a study ten times larger."""
    study = simulated(DATA / "large", scale=10.0)
    measured = run("ingest", study, "--db", fresh("sqlite-large") / "trackr.db", "-q")
    return {
        "large_ingest_s": measured.seconds,
        "large_peak_mb": measured.peak_mb,
        "large_over_small_memory (target 0.8 to 1.2)": measured.peak_mb / peak_mb,
    }


def cells(database: Path) -> tuple[float, float]:
    """Seconds of `select * from cells` over the lake and of the same SQL on the SQLite file (medians)."""
    sys.path.insert(0, str(ROOT))
    from tracker.api import open as open_tracker
    from tracker.lake import portable_sql

    with open_tracker(str(database)) as tracker:
        session = tracker.session()
        over_lake = median(seconds_of(lambda: session.connection.execute("select * from cells").fetchall()) for _ in range(21))
    connection = sqlite3.connect(database)
    text = portable_sql("cells")
    on_sqlite = median(seconds_of(lambda: connection.execute(text).fetchall()) for _ in range(5))
    connection.close()
    return over_lake, on_sqlite


def _fingerprint(database: Path) -> tuple[int, ...]:
    """What any write to the database would change: the file's change counter and its log."""
    with database.open("rb") as stream:
        counter = int.from_bytes(stream.read(28)[24:28], "big")
    log = database.with_name(database.name + "-wal")
    return (counter, database.stat().st_mtime_ns, log.stat().st_size if log.exists() else 0)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _truth(study: Path) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads((study / "truth.json").read_text())["counts"]
    return counts


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "load_1_5_15": os.getloadavg()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also ingest a study ten times larger")
    parser.add_argument("--many", action="store_true", help="also 2,000 ingests of one run each (about 15 minutes)")
    parser.add_argument("--no-postgres", action="store_true", help="leave PostgreSQL out")
    parser.add_argument("--no-formats", action="store_true", help="leave MLflow, inspect and Excel out (about 5 minutes)")
    parser.add_argument("--no-laws", action="store_true", help="leave fits, bootstraps, hold-outs and comparisons out (about 3 minutes)")
    parser.add_argument(
        "--long", action="store_true", help="also 10,000 fits against a dense search, and the bootstrap of hold-outs (about 15 minutes)"
    )
    parser.add_argument("--no-baseline", action="store_true", help="leave json + to_sql out (about a minute)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
