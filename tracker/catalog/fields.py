"""Reading a table of a TOML file key by key: each value is checked, and a key that nobody asked for is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tracker.errors import SourceFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MISSING = object()


class Fields:
    """One table of one file; knows where it is, so that every error names file and key."""

    def __init__(self, file: str, place: str, value: Any) -> None:
        self.file, self.place = file, place
        if not isinstance(value, dict):
            raise SourceFormatError(file, place, "a table", value)
        self._values: Mapping[str, Any] = value
        self._known: list[str] = []

    def refuse(self, key: str, expected: str, found: object, hint: str | None = None) -> NoReturn:
        """Raise the error for a key of this table."""
        place = ".".join(part for part in (self.place, _quoted(key)) if part)
        raise SourceFormatError(self.file, place, expected, found, hint=hint)

    def text(self, key: str) -> str | None:
        """A text that is not empty."""
        value = self._take(key)
        if value is _MISSING:
            return None
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            self.refuse(key, "a text", value)
        return value

    def choice(self, key: str, choices: Iterable[str]) -> str | None:
        """One of some texts."""
        value = self.text(key)
        known = list(choices)
        if value is not None and value not in known:
            self.refuse(key, f"one of {', '.join(known)}", value, _nearest(value, known))
        return value

    def whole(self, key: str) -> int | None:
        """A whole number of at least 1 that fits 64 bits."""
        value = self._take(key)
        if value is _MISSING:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**63:
            self.refuse(key, "a positive whole number", value)
        return value

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self._take(key)
        if value is _MISSING:
            return None
        if not isinstance(value, bool):
            self.refuse(key, "true or false", value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; nothing is an empty list."""
        value = self._take(key)
        if value is _MISSING:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() and "\0" not in item for item in value):
            self.refuse(key, "a list of texts", value)
        return tuple(value)

    def scalars(self, key: str) -> dict[str, Any]:
        """A table of numbers, texts and truth values."""
        table = self._table(key)
        for name, item in table.items():
            if not isinstance(item, str | int | float | bool) or item in (float("inf"), -float("inf")) or item != item:  # noqa: PLR0124 - NaN
                self.refuse(f"{key}.{name}", "a finite number, a text, true or false", item)
        return table

    def text_table(self, key: str) -> dict[str, str]:
        """A table of texts."""
        table = self._table(key)
        for name, item in table.items():
            if not isinstance(item, str) or not item.strip():
                self.refuse(f"{key}.{name}", "a text", item)
        return table

    def inner(self, key: str) -> Fields | None:
        """A table in this table."""
        value = self._take(key)
        return None if value is _MISSING else Fields(self.file, f"{self.place}.{_quoted(key)}", value)

    def scoped(self, key: str) -> dict[str, Fields]:
        """The named entries of a table of tables."""
        return {name: Fields(self.file, f"{_quoted(key)}.{_quoted(name)}", value) for name, value in self._table(key).items()}

    def done(self) -> None:
        """Every key was asked for, or the first that was not is an error."""
        for key in self._values:
            if key not in self._known:
                self.refuse(key, f"one of the keys {', '.join(self._known)}", key, _nearest(key, self._known))

    def _take(self, key: str) -> Any:
        self._known.append(key)
        return self._values.get(key, _MISSING)

    def _table(self, key: str) -> dict[str, Any]:
        value = self._take(key)
        if value is _MISSING:
            return {}
        if not isinstance(value, dict):
            self.refuse(key, "a table", value)
        return value


def _nearest(value: str, known: Iterable[str]) -> str | None:
    import difflib

    if value == "parameters":
        return 'the size of a model is that of its backbone: [backbones.NAME] with parameters and source, and backbone = "NAME"'
    near = difflib.get_close_matches(value, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def _quoted(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else f'"{key}"'
