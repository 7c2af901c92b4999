"""Changes to what a collection keeps of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levada.core.clock import SystemClock
from levada.core.configuration.kept import KeptValue, SettingChange, change_of
from levada.core.configuration.layers import Configuration, Given, resolve, user_file, without_removed
from levada.core.configuration.values import check_name, check_values, kept_name, names_in_order
from levada.core.settings import Settings, values_of


def kept_after(
    settings: Settings,
    kept: Mapping[str, KeptValue],
    given: Given,
    seen: Configuration | None,
    environment: Mapping[str, str],
    by: str,
) -> tuple[dict[str, KeptValue], list[SettingChange]]:
    """What a collection keeps once it is used with these settings, and what changed by that.

    `seen` is what was in force when the caller read the settings: a value that is as it was then was not chosen by
    the caller, and what the collection keeps now stays. Without it, all the settings are the caller's choice.
    """
    wanted, now = values_of(settings), resolve(kept, Given(), environment)
    held = without_removed(kept, given)
    own = {key: (value, given.source_of(key)) for key, value in given.values.items()}
    for key, value in wanted.items():
        if key in own or (seen is not None and value == seen.values.get(key)):
            continue
        if key in now.environment and value == now.values[key]:
            continue
        if key in held and held[key].value == value:
            continue
        if value != now.base.get(key):
            own[key] = value, by
        elif key in held:
            del held[key]
    # An option of a plug-in or a rule that is not there any more; not one that came after the caller looked.
    for key in [key for key in held if key not in wanted and (seen is None or key in seen.values)]:
        del held[key]
    return _kept(held, own, kept, now)


def kept_with(
    changes: Mapping[str, Any], kept: Mapping[str, KeptValue], environment: Mapping[str, str], by: str
) -> tuple[dict[str, KeptValue], list[SettingChange]]:
    """What a collection keeps after these changes (None: no value any more), and what changed by that.

    `SettingsError` for a value that does not fit, alone or with the others.
    """
    for key in changes:
        check_name(key)
    changes = {kept_name(key): value for key, value in changes.items()}
    now = resolve(kept, Given(), {})  # not of the environment: it may be another one when the crawl runs
    values = check_values({key: value for key, value in changes.items() if value is not None}, "")
    held = {key: each for key, each in kept.items() if key not in changes or key in values}
    after, done = _kept(held, {key: (value, by) for key, value in values.items()}, kept, now)
    resolve(after, Given(), {})
    return after, done


def _kept(
    held: dict[str, KeptValue],
    own: Mapping[str, tuple[Any, str]],
    before: Mapping[str, KeptValue],
    now: Configuration,
) -> tuple[dict[str, KeptValue], list[SettingChange]]:
    at = SystemClock().now()
    after = dict(held)
    for key, (value, by) in own.items():
        if key not in held or held[key].value != value:
            after[key] = KeptValue(value, by, at)
        elif by and held[key].by != by:  # the same value, now by another source
            after[key] = KeptValue(value, by, held[key].at)
    changes = []
    for key in names_in_order({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and old.value == new.value:
            continue
        was = old.value if old is not None else now.base.get(key)
        if new is None:
            changes.append(change_of(key, was, now.base.get(key), False, str(user_file()) if key in now.user else ""))
        else:
            changes.append(change_of(key, was, new.value, True, new.by))
    return after, changes
