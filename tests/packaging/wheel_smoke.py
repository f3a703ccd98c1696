"""Build the wheel and use it as a user would: a new environment, no development packages, another folder.

    python tests/packaging/wheel_smoke.py FOLDER     (`make wheel-smoke`)

Prints what it did; exits non-zero with the command that failed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
EXTRAS = ("pytest", "hypothesis", "ruff", "psycopg", "altair")
"""Packages that the core must do without."""


def main(folder: Path) -> None:
    """Build, install, use."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    python = _install(_build(folder / "dist"), folder / "venv")
    work = folder / "work"
    work.mkdir()
    _in_the_wheel(python, work)
    _use(python.parent / "trackr", work)
    sys.stdout.write("wheel smoke test: passed\n")


def _build(out: Path) -> Path:
    _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT], cwd=ROOT)
    (wheel,) = out.glob("*.whl")
    return wheel


def _install(wheel: Path, environment: Path) -> Path:
    _run([sys.executable, "-m", "venv", environment], cwd=ROOT)
    python = environment / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, "--constraint", ROOT / "constraints.txt", wheel], cwd=ROOT)
    return python


def _in_the_wheel(python: Path, work: Path) -> None:
    """The packages come from the wheel, and nothing else was needed to install them."""
    code = (
        "import importlib.util as u, json, tracker, cli, analyses, migrations;"
        f"print(json.dumps([[m.__file__ for m in (tracker, cli, analyses, migrations)], [n for n in {EXTRAS!r} if u.find_spec(n)]]))"
    )
    files, extras = json.loads(_run([python, "-c", code], cwd=work))
    _expect(all("site-packages" in file for file in files), f"packages come from {files}")
    _expect(not extras, f"the core pulled in {extras}")


def _use(trackr: Path, work: Path) -> None:
    """The first five minutes of a user."""
    _expect(_run([trackr, "--version"], cwd=work).startswith("trackr 0."), "no version")
    _expect("ingest" in _run([trackr, "--help"], cwd=work), "no help")
    upgraded = json.loads(_run([trackr, "db", "upgrade", "--json"], cwd=work))
    _expect(upgraded["changed"], f"db upgrade said {upgraded}")
    runs = work / "runs"
    runs.mkdir()
    rows = list(_rows())
    (runs / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _run([trackr, "ingest", runs], cwd=work)
    counted = json.loads(_run([trackr, "query", "select count(*) n, sum(credit) credit from answers", "--format", "json"], cwd=work))
    _expect(counted == [{"n": len(rows), "credit": sum(row["correct"] for row in rows)}], f"query said {counted}")
    ceiling = json.loads(_run([trackr, "analyze", "ceiling", "--cutoff", "0.2", "--json"], cwd=work))
    _expect(ceiling["headline"]["trajectories"] == 5, f"analyze ceiling said {ceiling['headline']}")


def _rows() -> Any:
    """Two models of one series on five questions at two sizes."""
    for model in ("InternVL3-8B", "InternVL3-14B"):
        for size in (448, 896):
            for question in range(5):
                correct = question < 2 + (size == 896)
                yield {"model": model, "benchmark": "TreeBench", "question_id": str(question), "input_size": size, "correct": correct}


def _run(command: list[Any], *, cwd: Path) -> str:
    """Standard output of a command; its failure is ours."""
    words = [str(part) for part in command]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRACKR_", "VIRTUAL_ENV"))}
    done = subprocess.run(words, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    sys.stdout.write(f"ok: {Path(words[0]).name} {' '.join(words[1:])[:100]}\n")
    return done.stdout


def _expect(truth: bool, otherwise: str) -> None:
    if not truth:
        sys.exit(f"wheel smoke test: {otherwise}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
