"""Measure fitting and resampling: fits a second against the paper's procedure, and the analyses on the full simulated study."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import DATA, best, run


def law_figures(*, long: bool) -> dict[str, Any]:
    """Figures of the law analyses; `long` adds the accuracy of 10,000 fits and the bootstrap of the hold-outs (some 15 minutes)."""
    database = DATA / "sqlite" / "trackr.db"
    figures: dict[str, Any] = {"fits": _script("fits.py"), "compare": _script("compare.py")}
    figures |= {
        "law_s": best(3, *_analyze(database, "law")).seconds,
        "forms_s (target < 5)": best(3, *_analyze(database, "forms")).seconds,
        "bootstrap_20x500_s (target < 15)": run(*_analyze(database, "bootstrap", "--replicates", 500)).seconds,
        "two_form_bootstrap_500_s (target < 120)": run(
            *_analyze(database, "bootstrap", "--replicates", 500, "--pair", "separable,coupled", "--weights", "both")
        ).seconds,
        "holdout_joint_s (target < 30)": run(*_analyze(database, "holdout", "--design", "joint")).seconds,
    }
    if long:
        figures["fits_check"] = _script("fits.py", "--check")
        figures["holdout_bootstrap_200_s (target < 600)"] = run(
            *_analyze(database, "holdout", "--design", "backbone,input_size", "--laws", "separable,coupled", "--replicates", 200)
        ).seconds
    return figures


def _analyze(database: Path, name: str, *options: object) -> tuple[object, ...]:
    return ("analyze", name, *options, "--db", database, "--no-save", "--json")


def _script(name: str, *arguments: str) -> Any:
    """What a script beside this one prints."""
    command = [sys.executable, str(Path(__file__).parent / name), *arguments]
    print("+", *command, file=sys.stderr)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
