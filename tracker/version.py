"""The version of the installed package."""

from __future__ import annotations


def version() -> str:
    """Version of trackr as installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("trackr")
    except PackageNotFoundError:
        return "0+unknown"
