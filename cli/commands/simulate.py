"""`trackr simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from cli.options import json_option


@click.command()
@click.argument("study", required=False, type=click.Path(path_type=Path, dir_okay=False), metavar="[STUDY.toml]")
@click.option(
    "--preset",
    metavar="NAME",
    help="A study that ships with trackr: separable-law (the paper's grid, 650 cells), demo (seconds), or sweeps (token sweeps; seconds).",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Folder to write; must be empty."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["lmms_eval", "native", "both"]),
    default="lmms_eval",
    show_default=True,
    help="Run folders of lmms-eval, native tables, or both.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed instead of the study's own.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Multiplies the number of questions per benchmark.")
@click.option("--force", is_flag=True, help="Replace an earlier simulation in DIR.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@json_option
def simulate(
    study: Path | None,
    preset: str | None,
    out: Path,
    form: str,
    seed: int | None,
    scale: float,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write the run folders of a study with planted truth.

    The study is a TOML file (docs/simulate.md lists its keys) or a preset. DIR gets lmms_eval/ and/or native/, study.toml,
    labels.csv, and truth.json with what was planted and drawn.
    """
    import json
    from dataclasses import asdict

    from tracker import simulate as simulation

    if (study is None) == (preset is None):
        message = "give either STUDY.toml or --preset"
        raise click.UsageError(message)
    plan = simulation.load(study) if study is not None else simulation.preset(preset or "")
    if seed is not None:
        plan = plan.model_copy(update={"seed": seed})
    if scale != 1.0:
        plan = plan.scaled(scale)
    report = simulation.simulate(plan, out, form=form, force=force, progress=None if quiet else _say)  # type: ignore[arg-type]
    if as_json:
        click.echo(json.dumps({**asdict(report), "folder": str(report.folder)}))
    else:
        click.echo(
            f"{report.folder}: {report.models} models, {report.cells} cells, {report.generations:,} generations "
            f"({report.failed:,} failed, {report.without_probabilities:,} without probabilities), {report.bytes / 1e6:,.1f} MB"
        )


def _say(text: str) -> None:
    click.echo(text, err=True)
