"""The yardstick of ingest: read every sample file and parse every line with orjson, keep nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson


def main() -> None:
    """Parse all lines under the folder."""
    lines = 0
    for path in sorted(Path(sys.argv[1]).rglob("*_samples_*.jsonl")):
        with path.open("rb") as stream:
            for line in stream:
                orjson.loads(line)
                lines += 1
    print(lines)


if __name__ == "__main__":
    main()
