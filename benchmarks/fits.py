"""Measure the fits of the separable law in CPU seconds of one core; prints JSON.

    python benchmarks/fits.py                   fits a second, and the paper's procedure in the same run
    python benchmarks/fits.py --check           10,000 synthetic fits against a dense search and the paper's procedure (about an hour)
    python benchmarks/fits.py --check 500

Progress goes to stderr. Only analyses.laws is measured; groups and dense search are in fits_reference.py.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is loaded

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from fits_reference import dense, group

from analyses.laws import SeparableLaw
from analyses.laws.floor import GRID_VALUES

GROUPS = 8
FITS = 500
"""Fits of each group in one call, as a bootstrap makes them."""
PAPER = 16
"""Fits by the paper's procedure: they take a fifth of a second each."""
REPEATS = 3
FLOORS = ("grid", "continuous", "free")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", nargs="?", const=10_000, type=int, metavar="FITS", help="accuracy of that many fits for each floor")
    parser.add_argument("--paper", type=int, default=1_000, metavar="FITS", help="how many of them the paper's procedure fits too")
    options = parser.parse_args()
    figures = check(options.check, options.paper) if options.check else speed()
    print(json.dumps(figures, indent=2))


def speed() -> dict[str, Any]:
    """Fits a second by floor and by what differs between the fits of a call."""
    figures: dict[str, Any] = {}
    for floor in FLOORS:
        law = SeparableLaw(floor=floor)
        seconds = dict.fromkeys(("given_tokens", "own_tokens", "left_out"), 0.0)
        rng = np.random.default_rng(4)
        for _ in range(GROUPS):
            cells = group(rng)
            y = cells.error + rng.normal(0, cells.noise, (FITS, len(cells.error)))
            tokens = cells.r * np.exp(rng.normal(0, 0.01, y.shape))
            kept = (rng.random(y.shape) < 0.85).astype(float)
            for mode, arguments in (
                ("given_tokens", (cells.r, y, None)),
                ("own_tokens", (tokens, y, None)),
                ("left_out", (cells.r, y, kept)),
            ):
                seconds[mode] += min(_timed(law, cells.n, *arguments) for _ in range(REPEATS))
        rates = {mode: GROUPS * FITS / total for mode, total in seconds.items()}
        figures[floor] = {f"{mode} fits/s (target {2000 if mode == 'own_tokens' else 3000})": round(rate) for mode, rate in rates.items()}
        if floor != "free":
            paper = paper_seconds(floor)
            figures[floor] |= {"paper_s_a_fit": round(paper, 4), "times_the_paper (target 500)": round(paper * rates["given_tokens"])}
    return figures


def _timed(law: SeparableLaw, *arguments: Any) -> float:
    started = time.process_time()
    law.fit_many(*arguments)
    return time.process_time() - started


def paper_seconds(floor: str) -> float:
    """Time of a fit by the paper's procedure."""
    rng = np.random.default_rng(5)
    law = SeparableLaw(floor=floor, optimizer="paper")
    total = 0.0
    for _ in range(PAPER):
        cells = group(rng)
        total += _timed(law, cells.n, cells.r, cells.error + rng.normal(0, cells.noise, cells.error.shape), None)
    return total / PAPER


def check(fits: int, by_paper: int) -> dict[str, Any]:
    """How far the objective lies above the dense search's and the paper's."""
    figures: dict[str, Any] = {}
    for floor in ("grid", "continuous"):
        rng = np.random.default_rng(6)
        over, missed, paper_over, worse = [], [], [], []
        for number in range(fits):
            cells = group(rng)
            y = cells.error + rng.normal(0, cells.noise, cells.error.shape)
            value = SeparableLaw(floor=floor).fit_many(cells.n, cells.r, y).objective[0]
            reference = dense(cells.n, cells.r, y, np.array(GRID_VALUES) if floor == "grid" else None)
            over.append(_over(value, reference))
            missed.append(_over(reference, value))
            if number < by_paper:
                paper = SeparableLaw(floor=floor, optimizer="paper").fit_many(cells.n, cells.r, y).objective[0]
                worse.append(_over(value, paper))
                paper_over.append(_over(paper, value))
            if number % 500 == 0:
                print(floor, number, file=sys.stderr)
        figures[floor] = {
            "fits": fits,
            "within_1e-6 (target 0.99)": float(np.mean(np.array(over) <= 1e-6)),
            "within_1e-4 (target 0.999)": float(np.mean(np.array(over) <= 1e-4)),
            "largest_excess": max(over),
            "dense_search_above_by_1e-6": float(np.mean(np.array(missed) > 1e-6)),
            "paper_fits": len(worse),
            "above_the_paper (target 0)": int(np.sum(np.array(worse) > 1e-9)),
            "paper_above_by_1e-6": float(np.mean(np.array(paper_over) > 1e-6)),
            "paper_above_by_1e-3": float(np.mean(np.array(paper_over) > 1e-3)),
        }
    return figures


def _over(value: float, reference: float) -> float:
    """Relative excess, 0 within 1e-12."""
    return 0.0 if value - reference <= 1e-12 else (value - reference) / max(reference, 1e-12)


if __name__ == "__main__":
    main()
