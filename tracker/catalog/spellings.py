"""Aliases: a written one means one thing, and some imply others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tracker.catalog.spec import BackboneSpec, BenchmarkSpec, ModelSpec
from tracker.errors import SourceFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Aliased = TypeVar("Aliased", bound=BackboneSpec | ModelSpec | BenchmarkSpec)


def check_aliases(file: str, table: str, specs: Mapping[str, Aliased]) -> None:
    """A written spelling means one thing."""
    owners = {name: name for name in specs}
    for name, spec in specs.items():
        for alias in spec.aliases:
            owner = owners.setdefault(alias, name)
            if owner != name:
                raise SourceFormatError(file, f'{table}."{name}".aliases', f"spellings that do not mean {owner} too", alias)


def with_implied(specs: Mapping[str, Aliased], known: Callable[[str], Aliased | None]) -> dict[str, Aliased]:
    """Add what an alias implies: `org/name` is also written `name` and `org__name`, unless that means something else."""
    owners: dict[str, str | None] = {}
    for name, spec in specs.items():
        for spelling in (name, *spec.aliases, *_implied(spec.aliases)):
            owner = owners.setdefault(spelling, name)
            other = known(spelling)
            if owner != name or (other is not None and other.name != name):
                owners[spelling] = None
    return {
        name: replace(
            spec, aliases=tuple(dict.fromkeys([*spec.aliases, *(a for a in _implied(spec.aliases) if owners[a] == name and a != name)]))
        )
        for name, spec in specs.items()
    }


def _implied(aliases: tuple[str, ...]) -> list[str]:
    """The other spellings of every alias of the form org/name."""
    pairs = [alias.split("/") for alias in aliases if alias.count("/") == 1]
    return [spelling for owner, bare in pairs if owner.strip(".~") and bare for spelling in (bare, f"{owner}__{bare}")]
