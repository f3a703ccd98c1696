"""Every error that trackr raises on purpose.

TrackrError                 exit 1
├── UsageError              exit 2   the command or call was wrong
├── InputError              exit 3   an offered file was refused
│   └── SourceFormatError            a place in a file is not what its format says
├── DatabaseError           exit 1   the database cannot be opened, read or written
├── LakeError               exit 1   the lake cannot be read or written
├── QueryError              exit 1   a SQL statement failed
│   └── LimitError          exit 4   a limit stopped it
├── AnalysisError           exit 1   the cohort cannot support the analysis
└── FitError                exit 1   there is no usable number
"""

from __future__ import annotations


class TrackrError(Exception):
    """The root: a message of one line, where it happened, and what to do about it."""

    kind = "error"
    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.where, self.hint = message, where, hint

    @property
    def reason(self) -> str:
        """Message and remedy, without the place."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __str__(self) -> str:
        """One line: place, message, remedy."""
        return f"{self.where}: {self.reason}" if self.where else self.reason


class UsageError(TrackrError):
    """The command or call was wrong."""

    kind = "usage"
    exit_code = 2


class InputError(TrackrError):
    """An offered file was refused."""

    kind = "input"
    exit_code = 3


class SourceFormatError(InputError):
    """A place in a file is not what its format says."""

    kind = "format"

    def __init__(self, path: str, place: str, expected: str, found: object, *, hint: str | None = None) -> None:
        shown = repr(found)
        shown = shown if len(shown) <= 120 else shown[:117] + "..."
        super().__init__(f"expected {expected}, found {shown}", where=f"{path}: {place}" if place else path, hint=hint)
        self.path, self.place, self.expected, self.found = path, place, expected, found


class DatabaseError(TrackrError):
    """The database cannot be opened, read or written."""

    kind = "database"


class LakeError(TrackrError):
    """The lake cannot be read or written."""

    kind = "lake"


class QueryError(TrackrError):
    """A SQL statement failed."""

    kind = "query"


class LimitError(QueryError):
    """A limit stopped a query."""

    kind = "limit"
    exit_code = 4


class AnalysisError(TrackrError):
    """The cohort cannot support the analysis."""

    kind = "analysis"


class FitError(AnalysisError):
    """There is no usable number."""

    kind = "fit"
