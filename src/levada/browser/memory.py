"""Memory of rendering: where it paid off, site by site.

A shell is rendered unless that never paid off on its site. On a site where it did, a page that only may be a shell is
rendered too. Every so often it is tried again, because sites change. The file has hashes in the place of sites, so that
it names none that is to be forgotten.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.browser.shell import Shell
from levada.core.hashing import content_digest

_ENOUGH = 5  # renderings without any gain, after which a site's shells are left as they are
_AGAIN = 20  # one in so many of them is rendered anyway
_GAIN = 10  # words more than the page has as it is served
_MOST = 40  # renderings that are remembered; older ones count half
_SITES = 20_000


_HASH = re.compile("[0-9a-f]{16}")


class SiteRendering(msgspec.Struct, array_like=True):
    """What is known of one site."""

    rendered: int = 0
    paid: int = 0
    skipped: int = 0


class RenderMemory:
    """What paid off; kept in a small file if there is one."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._sites: dict[str, SiteRendering] = {}
        self._is_saved = True
        if file is not None:
            with suppress(OSError, msgspec.MsgspecError):
                known = msgspec.json.decode(file.read_bytes(), type=dict[str, SiteRendering])
                self._sites = {name: each for name, each in known.items() if _HASH.fullmatch(name)}

    def wants(self, site: str, shell: Shell) -> bool:
        """Whether a page that looks like this is rendered."""
        if shell is Shell.NO:
            return False
        known = self._sites.get(_hashed(site))
        if known is None:
            return shell is Shell.YES
        if known.paid:
            return True
        if shell is not Shell.YES:
            return False
        if known.rendered < _ENOUGH:
            return True
        known.skipped += 1
        return known.skipped % _AGAIN == 0

    def note(self, site: str, before: int, after: int) -> None:
        """A page of this site had so many words as it was served, and has so many rendered."""
        known = self._sites.setdefault(_hashed(site), SiteRendering())
        known.rendered += 1
        known.paid += after >= before + _GAIN
        if known.rendered > _MOST:
            known.rendered, known.paid = known.rendered // 2, known.paid // 2
        if len(self._sites) > _SITES:
            del self._sites[next(iter(self._sites))]
        self._is_saved = False

    def save(self) -> None:
        if self._file is None or self._is_saved:
            return
        self._is_saved = True
        fresh = self._file.with_suffix(".new")
        with suppress(OSError):  # what is not remembered is found out again
            fresh.write_bytes(msgspec.json.encode(self._sites))
            fresh.replace(self._file)


def _hashed(site: str) -> str:
    return content_digest(site.encode())[:8].hex()
