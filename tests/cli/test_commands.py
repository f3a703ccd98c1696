"""Every command has help and a docs section."""

from __future__ import annotations

import re

import click
import pytest

from cli.main import COMMANDS, cli
from tests.conftest import ROOT


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def leaves(name: str, found: click.Command) -> list[tuple[str, click.Command]]:
    """A command and the commands below it, by their full names."""
    if not isinstance(found, click.Group):
        return [(name, found)]
    context = click.Context(found)
    below = [(part, found.get_command(context, part)) for part in found.list_commands(context)]
    return [(name, found), *(leaf for part, sub in below if sub is not None for leaf in leaves(f"{name} {part}", sub))]


ALL = [leaf for name in COMMANDS for leaf in leaves(name, command(name))]


@pytest.mark.parametrize(("name", "found"), ALL, ids=[name for name, _ in ALL])
def test_every_command_and_option_has_help(name: str, found: click.Command) -> None:
    assert found.help
    for parameter in found.params:
        assert not isinstance(parameter, click.Option) or parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_docs_section(name: str) -> None:
    assert f"\n## `trackr {name}`\n" in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def test_examples_in_the_docs_name_commands_and_options_that_exist() -> None:
    known = dict(ALL)
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for line in re.findall(r"^ {4}trackr (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            words = re.sub(r"\"[^\"]*\"|'[^']*'", "TEXT", line).split(" # ")[0].split()
            name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in known), None)
            assert name, f"{page.name}: trackr {line}"
            options = {option for parameter in known[name].params for option in [*parameter.opts, *parameter.secondary_opts]}
            used = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert used <= options | {"--help"}, f"{page.name}: trackr {line}"
