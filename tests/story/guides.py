"""The commands of a guide, as a reader types them: a shell runs them, with `levada` on its path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.house.tree import HOUSE, fenced

__all__ = ["guide_commands", "guide_settings", "typed"]


def guide_commands(name: str) -> list[str]:
    """The commands of the guide's first block: five at most."""
    found = next(fenced(HOUSE / "docs" / "guides" / f"{name}.md")).strip().splitlines()
    assert 1 <= len(found) <= 5
    return found


def guide_settings(name: str) -> list[str]:
    """Its settings files, each without the indentation of the list that it stands in."""
    text = (HOUSE / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
    return [textwrap.dedent(block) for block in re.findall(r"^ *```toml\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)]


def typed(command: str, cwd: Path, instead: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run one line, with names that stand for the reader's own replaced. A job in the background goes on."""
    for theirs, ours in (instead or {}).items():
        command = command.replace(theirs, ours)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    silent = " > /dev/null 2>&1" if command.endswith("&") else ""
    shell = command.removesuffix("&") + silent + ("& echo $!" if silent else "")
    return subprocess.run(
        ["/bin/bash", "-c", shell],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        timeout=90,
    )
