"""Which settings a running crawl takes up at once, and how it learns of them."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from levada.core.configuration.layers import Given, resolve, variable_of
from levada.core.errors import LevadaError
from levada.core.settings import Settings, combined_settings, values_of

if TYPE_CHECKING:
    from levada.core.folder import DataFolder

log = logging.getLogger(__name__)

MISSING = (0, 0)  # the mark of a file that is not there, as in a folder that was deleted

_SECTIONS = frozenset({"budget", "guard", "politeness", "revisit", "site"})
_KEYS = frozenset(
    {
        "browser.command",
        "browser.max_bytes",
        "browser.memory",
        "browser.seconds",
        "crawl.max_depth",
        "crawl.max_pages_per_site",
        "crawl.max_redirects",
        "crawl.max_url_length",
        "crawl.near_duplicate_run",
        "crawl.scope",
        "crawl.sitemaps",
        "fetch.ca_file",
        "fetch.connect_seconds",
        "fetch.http2",
        "fetch.max_buffered_bytes",
        "fetch.max_bytes",
        "fetch.max_decoded_bytes",
        "fetch.max_header_bytes",
        "fetch.min_rate",
        "fetch.min_rate_seconds",
        "fetch.proxy",
        "fetch.seconds",
        "parse.max_kills",
        "store.batch",
        "store.gather_seconds",
        "store.keep_versions",
        "store.lease_seconds",
        "store.new_share",
    }
)


def takes_effect_at_once(key: str) -> bool:
    """Whether a running crawl takes up a change of this setting at once; else when it is started again."""
    return key.partition(".")[0] in _SECTIONS or key in _KEYS


class SettingsFollower:
    """What a collection keeps of its settings, for a crawl that runs with them.

    A variable of the crawl's environment stays in force, whatever the collection keeps.
    """

    def __init__(self, folder: DataFolder, settings: Settings) -> None:
        self._folder = folder
        self._values = values_of(settings)
        self._mark = 0, 0  # so that the first look sees what was changed while the crawl began
        self._told: dict[str, Any] = {}  # the changes that cannot take effect now

    def poll(self) -> Settings | None:
        """The settings to run with from now on, if they changed since the last look."""
        mark = self._folder.settings_mark()
        if mark in (self._mark, MISSING):
            return None
        self._mark = mark
        try:
            now = resolve(self._folder.kept_settings(), Given(), os.environ)
            kept = {key: each.value for key, each in now.kept.items()}
            wanted = {key: value for key, value in (now.base | kept).items() if value != self._values.get(key)}
            gone = {key for key in self._values if key.startswith("site.") and key not in (now.base | kept)}
            possible = {key for key in wanted if takes_effect_at_once(key) and key not in now.environment}
            self._tell({key: value for key, value in wanted.items() if key not in possible}, now.environment)
            if not possible and not gone:
                return None
            values = self._values | {key: wanted[key] for key in possible}
            for key in gone:
                del values[key]
            settings = combined_settings(values, "")
        except LevadaError as error:
            log.warning("the settings of the crawl stay as they are: %s", error)
            return None
        self._values = values
        return settings

    def _tell(self, waiting: dict[str, Any], environment: frozenset[str]) -> None:
        """Say which changes do not take effect, once for each."""
        for key, value in waiting.items():
            if self._told.get(key, _NOTHING) == value:
                continue
            if key in environment:
                log.info("%s stays as it is: the variable %s is stronger", key, variable_of(key))
            else:
                log.info("%s takes effect when the crawl is started again", key)
        self._told = waiting


_NOTHING = object()
