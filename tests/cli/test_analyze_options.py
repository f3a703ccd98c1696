"""Options of analyses are made from their parameters: lists, pairs of numbers, names without an option."""

from __future__ import annotations

from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner
from pydantic import Field

from analyses.parameters import AnalysisParameters, checked
from cli.commands.analyze import _parameter_options
from tracker.errors import UsageError


class Made(AnalysisParameters):
    names: tuple[str, ...] = Field(default=(), description="models", json_schema_extra={"argument": "MODEL..."})
    box: tuple[float, float] = Field(default=(0.05, 10.0), description="bounds of the exponents")
    by: tuple[Literal["series", "suite", "task"], ...] = Field(default=("series", "suite"), description="columns that make a group")
    drop: tuple[str, ...] = Field(default=(), description="cells to leave out")
    budgets: tuple[float, ...] = Field(default=(25.0, 50.0), description="percentiles")
    replicates: int = Field(default=500, ge=1, description="refits")
    bounded: bool = Field(default=False, description="logistic link")


def command(found: dict[str, Any]) -> click.Command:
    def run(**options: Any) -> None:
        found.update({name: value for name, value in options.items() if value not in {None, ()}})

    decorated: Any = run
    for decorator in reversed(_parameter_options(Made)):
        decorated = decorator(decorated)
    return click.command()(decorated)


def given(*words: str) -> Made:
    found: dict[str, Any] = {}
    outcome = CliRunner().invoke(command(found), list(words))
    if outcome.exit_code:
        raise UsageError(outcome.output)
    return checked(Made, found)


def test_nothing_given_leaves_the_defaults() -> None:
    assert given() == Made()


def test_names_stand_without_an_option() -> None:
    assert given("InternVL3-8B", "Qwen3-VL-8B", "--bounded").names == ("InternVL3-8B", "Qwen3-VL-8B")


def test_a_pair_of_numbers_is_written_with_a_comma() -> None:
    assert given("--box", "0.05,3").box == (0.05, 3.0)


@pytest.mark.parametrize("text", ["0.05", "a,b", "1,2,3", ""])
def test_what_is_no_pair_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match="expected 2 numbers with commas between them"):
        given("--box", text)


def test_choices_come_with_commas_or_one_by_one() -> None:
    assert given("--by", "series,task").by == ("series", "task")
    assert given("--by", "series", "--by", "task").by == ("series", "task")
    assert given("--by", "series, task", "--by", "series").by == ("series", "task")


def test_numbers_come_with_commas_or_one_by_one() -> None:
    assert given("--budgets", "10,90.5", "--budgets", "50").budgets == (10.0, 90.5, 50.0)
    with pytest.raises(UsageError, match="'x' is not a valid float"):
        given("--budgets", "10,x")


def test_a_choice_that_is_none_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="'series', 'suite', 'task'"):
        given("--by", "series,colour")


def test_free_texts_keep_their_commas() -> None:
    assert given("--drop", "variant=a,b", "--drop", "input_size=4096").drop == ("variant=a,b", "input_size=4096")


def test_values_out_of_range_name_their_option() -> None:
    with pytest.raises(UsageError, match="greater than or equal to 1") as caught:
        given("--replicates", "0")
    assert caught.value.where == "--replicates"


def test_the_help_shows_defaults_as_they_are_typed() -> None:
    text = " ".join(CliRunner().invoke(command({}), ["--help"]).output.split())
    assert "[default: 0.05,10.0]" in text
    assert "[default: series,suite]" in text
    assert "[OPTIONS] MODEL..." in text
