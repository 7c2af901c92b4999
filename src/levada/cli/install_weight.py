"""What does the installation weigh? Levada and every package that it cannot do without."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import msgspec

from levada import __version__

__all__ = ["Package", "extras_of", "installed_packages", "requirements_of"]

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


class Package(msgspec.Struct, frozen=True):
    name: str
    version: str
    bytes: int


def requirements_of(name: str) -> list[tuple[str, str, bool]]:
    """Name, wanted versions, and whether only some machines need it, of what `name` needs itself."""
    needed = []
    for line in _requires(name):
        found = _REQUIREMENT.match(line)
        marker = found[3] if found else None
        if found and not (marker and _EXTRA.search(marker)):
            needed.append((found[1], found[2].strip(), marker is not None))
    return needed


def extras_of(name: str) -> dict[str, list[str]]:
    """The packages that each extra brings."""
    extras: dict[str, list[str]] = {}
    for line in _requires(name):
        found = _REQUIREMENT.match(line)
        extra = _EXTRA.search(found[3] or "") if found else None
        if found and extra:
            extras.setdefault(extra[1], []).append(found[1])
    return extras


def installed_packages(name: str) -> list[Package]:
    """`name` and all that it needs, the heaviest first."""
    waiting, found = [name], {}
    while waiting:
        here = waiting.pop()
        key = re.sub(r"[-_.]+", "-", here).lower()
        if key in found:
            continue
        try:
            known = distribution(here)
        except PackageNotFoundError:
            continue  # needed on other machines only; one that is needed here is a check of its own
        # Of a source folder that has moved on since it was installed, the record is of that day.
        number = __version__ if key == "levada" else known.version
        found[key] = Package(known.metadata["Name"], number, _weight(known))
        waiting += [each for each, _, _ in requirements_of(here)]
    return sorted(found.values(), key=lambda package: (-package.bytes, package.name.lower()))


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:  # run from a source folder that was never installed
        return []


def _weight(known: Distribution) -> int:
    files = known.files or []
    total = sum(_size(Path(str(file.locate()))) for file in files)
    if known.metadata["Name"] == "levada" and not any(file.name == "ports.py" for file in files):
        # Installed from its own source folder: its files are not in the record.
        source = Path(__file__).parents[1]
        total += sum(_size(path) for path in source.rglob("*") if path.suffix != ".pyc")
    return total


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
