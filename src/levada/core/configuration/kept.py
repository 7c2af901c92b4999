"""What a collection keeps of its settings: `settings.json`, with the source and time of every value.

    {"politeness": {"delay": 2.0}, "kept": {"politeness.delay": {"by": "--delay", "at": 1763459200.0}}}

Only values that somebody set are in it. Versions before 0.4 wrote all settings: of such a file, the values that
differ from the defaults count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from levada.core.configuration.values import is_secret, masked, shown
from levada.core.settings import Settings, checked_values, nested_values, values_of

_BEFORE, _BY_HAND = "an earlier version", "settings.json"


class KeptValue(msgspec.Struct, frozen=True):
    """A value that a collection keeps."""

    value: Any
    by: str = ""  # a file, a flag, `levada settings`...; "": read from a file that an older version wrote
    at: float | None = None


class SettingChange(msgspec.Struct, frozen=True):
    """A changed setting of a collection.

    >>> print(news.change_settings({"politeness.delay": 0.5})[0])
    politeness.delay: 0 -> 0.5, kept with the collection
    """

    key: str
    before: Any  # the value in force until now; secrets are masked
    value: Any
    kept: bool  # false: the collection keeps no value of its own any more
    by: str = ""  # who gave the value; of one that is not kept, the file whose value holds now: "" is the default

    def __str__(self) -> str:
        change = f"{self.key}: {shown(self.before)} -> {shown(self.value)}"
        if self.before == self.value:
            change = f"{self.key}: {shown(self.value)}"
        if self.kept:
            return f"{change}, kept with the collection"
        return f"{change}, {f'from {self.by}' if self.by else 'the default'}"


def change_of(key: str, before: Any, value: Any, kept: bool, by: str) -> SettingChange:
    return SettingChange(key, masked(key, before), masked(key, value), kept, by)


def read_kept(content: bytes, where: str) -> dict[str, KeptValue]:
    """The kept values by `section.key`; raises a `msgspec.MsgspecError` or `SettingsError` if it is damaged."""
    sections = msgspec.json.decode(content, type=dict[str, dict[str, Any] | list[dict[str, Any]]])
    sources = sections.pop("kept", None)
    values = checked_values(sections, where, names=False)
    if sources is None:
        defaults = values_of(Settings())
        return {key: KeptValue(value) for key, value in values.items() if value != defaults.get(key)}
    told = msgspec.convert(sources, dict[str, _Source])
    return {
        key: KeptValue(value, source.by, source.at) if (source := told.get(key)) else KeptValue(value, _BY_HAND)
        for key, value in values.items()
    }


def encode_kept(kept: Mapping[str, KeptValue]) -> bytes:
    sources = {key: _Source(each.by or _BEFORE, each.at) for key, each in kept.items()}
    content = {**nested_values({key: each.value for key, each in kept.items()}), "kept": sources}
    return msgspec.json.format(msgspec.json.encode(content))


def holds_secrets(kept: Mapping[str, KeptValue]) -> bool:
    """Whether only the owner of the folder may read the file."""
    return any(key == "store.servers" or is_secret(key, each.value) for key, each in kept.items())


class _Source(msgspec.Struct, frozen=True, omit_defaults=True):
    by: str = ""
    at: float | None = None
