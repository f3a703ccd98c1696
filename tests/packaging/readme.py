"""The outputs in README.md are real: `make readme` writes them again, a test compares them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n\$ (?P<command>.+)\n(?P<output>(?:.*\n)*?)```\n")


def written(text: str, folder: Path) -> str:
    """The README with every output as the command gives it now, in a folder with the demo study in `runs`."""
    _run("trackr simulate --preset demo --out runs --quiet", folder)

    def one(match: re.Match[str]) -> str:
        return f"```console\n$ {match['command']}\n{_run(match['command'], folder)}```\n"

    return BLOCK.sub(one, text)


def comparable(text: str) -> str:
    """Without what differs from run to run: seconds."""
    return re.sub(r"\(\d+\.\d s\)", "(S s)", text)


def _run(command: str, folder: Path) -> str:
    """Standard output of a shell command, with the folder shown as a home folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRACKR_")}
    environment = kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines).replace(str(folder.resolve()), "/home/you/study")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        README.write_text(written(README.read_text(encoding="utf-8"), Path(name)), encoding="utf-8")
