"""The settings that a command is given by a file and flags, and what is said of those that the collection keeps."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levada.cli.logs import tell

if TYPE_CHECKING:
    from levada.core.configuration.kept import SettingChange
    from levada.core.configuration.layers import Given

_HERE = Path("levada.toml")


def given_settings(config: Path | None, flags: Mapping[str, tuple[str, Any]] | None = None) -> Given:
    """What this file says, or else levada.toml if it is here; and flags, by the setting that they change."""
    from levada.core.configuration.layers import Given, file_given, flags_given

    given = Given() if config is None and not _HERE.exists() else file_given(config or _HERE)
    return flags_given(given, flags or {})


def tell_kept(changes: Sequence[SettingChange]) -> None:
    """Say which settings the collection keeps from now on, a line for each."""
    for each in changes:
        tell(str(each), logging.INFO)


def kept_words(changes: Sequence[SettingChange]) -> str:
    """What a new collection keeps, in a line."""
    from levada.core.configuration.values import shown

    return f"kept with the collection: {', '.join(f'{each.key} = {shown(each.value)}' for each in changes)}"
