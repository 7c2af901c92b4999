"""Settings in layers: each value comes from the strongest source that has one.

From the weakest: default, user file, collection, file (`--config` or levada.toml), environment, flag. What a file or
a flag says is kept in the collection. What the environment says counts for one process and is never kept, so that
it may hold passwords.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from levada.core.configuration.kept import KeptValue
from levada.core.configuration.values import (
    check_values,
    masked,
    names_in_order,
    parse_value,
    setting_types,
    shown,
)
from levada.core.errors import SettingsError
from levada.core.settings import Settings, checked_values, combined_settings, load_values, values_of

_PREFIX = "LEVADA_"
_NO_SETTINGS = frozenset(  # variables of commands, and of the tests
    {
        "LEVADA_BESIDE",
        "LEVADA_CONTROL",
        "LEVADA_DATA",
        "LEVADA_RABBITMQ",
        "LEVADA_READ_TOKEN",
        "LEVADA_STAGE",
        "LEVADA_STORE",
        "LEVADA_TOKEN",
        "LEVADA_WORKER",
    }
)
_OF_KUBERNETES = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_(TCP|UDP|SCTP)(_.*)?)?)")
_TOGETHER = ("revisit.floor", "revisit.first", "revisit.ceiling")


class Source(StrEnum):
    """Where the value of a setting comes from, the weakest first.

    >>> levada.Source.COLLECTION.value
    'collection'
    """

    DEFAULT = "default"
    USER = "user file"
    COLLECTION = "collection"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class SettingValue(msgspec.Struct, frozen=True):
    """The value of a setting that is in force, and where it comes from; secrets are masked.

    >>> news.setting_sources()["politeness.delay"].source.value
    'collection'
    """

    key: str
    value: Any
    default: Any
    source: Source
    where: str = ""  # the file, variable or flag; of a kept value, who set it
    at: float | None = None  # of a kept value: when it was set
    kept: Any = None  # what the collection keeps, where something stronger is in force

    @property
    def changed(self) -> bool:
        """Whether it differs from the default."""
        return bool(self.value != self.default)


class Given(msgspec.Struct, frozen=True):
    """The values that one command is given, by `section.key`."""

    file: dict[str, Any] = {}
    path: str = ""  # of the file, absolute; "": none
    flags: dict[str, Any] = {}
    names: dict[str, str] = {}  # of the flags, by key

    @property
    def values(self) -> dict[str, Any]:
        return self.file | self.flags

    def source_of(self, key: str) -> str:
        return self.names.get(key, "a flag") if key in self.flags else self.path


class Configuration(msgspec.Struct, frozen=True):
    """The settings in force, and the source of every value that is not a default."""

    settings: Settings
    values: dict[str, Any]  # all, by key
    sources: dict[str, tuple[Source, str, float | None]]
    kept: dict[str, KeptValue]  # as the collection has it
    base: dict[str, Any]  # what would hold without the collection and all that is stronger
    user: frozenset[str]  # the keys that the user file sets
    environment: frozenset[str] = frozenset()  # the keys that it sets

    def report(self) -> dict[str, SettingValue]:
        """All settings in the order of the documentation."""
        defaults, found = values_of(Settings()), {}
        for key in names_in_order({*setting_types(), *self.values}):
            source, where, at = self.sources.get(key, (Source.DEFAULT, "", None))
            kept = self.kept.get(key)
            other = None if kept is None or source is Source.COLLECTION else masked(key, kept.value)
            value, default = masked(key, self.values.get(key)), masked(key, defaults.get(key))
            found[key] = SettingValue(key, value, default, source, where, at, other)
        return found


def chosen_here(found: Mapping[str, SettingValue], settings: Settings) -> dict[str, SettingValue]:
    """The report of a program that uses these settings, which the collection does not keep yet."""
    values, told = values_of(settings), {}
    for key in names_in_order({*values, *found}):
        value = masked(key, values.get(key))
        if key in found and found[key].value == value:
            told[key] = found[key]
        else:
            default = found[key].default if key in found else None
            told[key] = SettingValue(key, value, default, Source.FLAG, "a program")
    return told


def resolve(kept: Mapping[str, KeptValue], given: Given, environment: Mapping[str, str]) -> Configuration:
    """The settings in force, of all sources."""
    values: dict[str, Any] = values_of(Settings())
    sources: dict[str, tuple[Source, str, float | None]] = {}
    user, path = user_values()
    for key, value in user.items():
        values[key], sources[key] = value, (Source.USER, str(path), None)
    base = dict(values)
    held = without_removed(kept, given)
    for key, each in held.items():
        values[key], sources[key] = each.value, (Source.COLLECTION, each.by, each.at)
    for key, value in given.file.items():
        values[key], sources[key] = value, (Source.FILE, given.path, None)
    stated = environment_values(environment)
    for key, value in stated.items():
        values[key], sources[key] = value, (Source.ENVIRONMENT, variable_of(key), None)
    for key, value in given.flags.items():
        values[key], sources[key] = value, (Source.FLAG, given.source_of(key), None)
    try:
        settings = combined_settings(values, "")
    except SettingsError as error:
        raise SettingsError(_contradiction(str(error), values, sources)) from None
    return Configuration(settings, values, sources, dict(kept), base, frozenset(user), frozenset(stated))


def without_removed(kept: Mapping[str, KeptValue], given: Given) -> dict[str, KeptValue]:
    """The kept values without those that came from the given file and are not in it any more."""
    if not given.path:
        return dict(kept)
    return {key: each for key, each in kept.items() if each.by != given.path or key in given.file}


def _contradiction(
    said: str, values: Mapping[str, Any], sources: Mapping[str, tuple[Source, str, float | None]]
) -> str:
    """Which values contradict each other, and where each comes from."""
    named = [key for key in (_TOGETHER if said.startswith("revisit ") else sources) if key in values]
    facts = [f"{key} = {shown(masked(key, values[key]))} ({_place(sources.get(key))})" for key in named]
    return f"{said}: {', '.join(facts)}" if facts else said


def _place(source: tuple[Source, str, float | None] | None) -> str:
    if source is None:
        return Source.DEFAULT
    kind, where, _ = source
    return f"{kind}, by {where}" if kind is Source.COLLECTION and where else where or kind


def file_given(path: Path) -> Given:
    """What a levada.toml says, for a command that is given it."""
    return Given(checked_values(load_values(path), str(path)), str(path.absolute()))


def flags_given(given: Given, flags: Mapping[str, tuple[str, Any]]) -> Given:
    """With flags: by key the name of the flag and its value; None where it was not given."""
    values: dict[str, Any] = {}
    for key, (name, value) in flags.items():
        if value is not None:
            try:
                values |= check_values({key: value}, "")
            except SettingsError as error:
                raise SettingsError(str(error).replace(key, name)) from None
    return Given(given.file, given.path, values, {key: name for key, (name, _) in flags.items()})


def user_file() -> Path:
    """The settings of this user for all collections."""
    return configuration_folder() / "levada.toml"


def configuration_folder() -> Path:
    """The folder of this user for what programs are told: $XDG_CONFIG_HOME/levada."""
    return _user_folder("XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """The folder of this user for named collections: $XDG_DATA_HOME/levada."""
    return _user_folder("XDG_DATA_HOME", ".local/share")


def _user_folder(variable: str, usual: str) -> Path:
    chosen = os.environ.get(variable, "")
    return (Path(chosen) if os.path.isabs(chosen) else Path(os.path.expanduser("~")) / usual) / "levada"


def user_values() -> tuple[dict[str, Any], Path]:
    path = user_file()
    if not path.is_file():
        return {}, path
    return checked_values(load_values(path), str(path)), path


def variable_of(key: str) -> str:
    """`politeness.delay` -> `LEVADA_POLITENESS_DELAY`."""
    return _PREFIX + key.upper().replace(".", "_").replace("-", "_")


def environment_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that variables such as `LEVADA_POLITENESS_DELAY` say; `SettingsError` for one that is wrong.

    Variables that Kubernetes sets for a service named levada are left alone, and so are others that are not like
    the name of a setting.
    """
    names = [name for name in environment if name.startswith(_PREFIX) and name not in _NO_SETTINGS]
    if not names:
        return {}
    known = {variable_of(key): key for key in setting_types()}
    found: dict[str, Any] = {}
    for name in sorted(names):
        if name in known:
            found |= _stated(name, known[name], environment[name])
        elif not _OF_KUBERNETES.fullmatch(name):
            section = name[len(_PREFIX) :].partition("_")[0].lower()
            near = get_close_matches(name, known, n=1, cutoff=0.8)
            if near or any(key.startswith(f"{section}.") for key in known.values()):
                hint = near or get_close_matches(name, known, n=1, cutoff=0.5)
                meant = f"did you mean {hint[0]}?" if hint else "'levada settings' lists all"
                raise SettingsError(f"the variable {name[:100]} names no setting: {meant}")
    return found


def _stated(name: str, key: str, text: str) -> dict[str, Any]:
    try:
        return check_values({key: parse_value(key, text)}, "")
    except SettingsError as error:
        # Not the value: it may be a password.
        said = re.sub(r", not .*", "", str(error))
        raise SettingsError(f"the variable {name}: {said}") from None
