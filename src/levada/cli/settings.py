"""`levada settings`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.options import ConfigOption, DataOption, JsonOption, print_json
from levada.core.errors import UsageError

if TYPE_CHECKING:
    from levada.core.configuration.kept import SettingChange
    from levada.core.configuration.layers import SettingValue

_SET, _UNSET = "set", "unset"


def settings(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY|set KEY=VALUE|unset KEY]...", help="What to show or change; default: show all."),
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only those that differ from the default.")] = False,
    data: DataOption = Path("levada-data"),
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Shows the settings of a collection and where each comes from, and changes them.

    A changed setting is kept with the collection, and a running crawl takes it up within a second if it can. The
    strongest source has the last word: flag, environment, file, collection, user file, default. Secrets are masked.

    Examples:

    ```
    levada settings
    levada settings --changed
    levada settings politeness.delay revisit
    levada settings set politeness.delay=2 budget.per_hour=2000
    levada settings set 'guard.allow=["192.168.1.20:80"]' --data news
    levada settings unset politeness.delay
    ```
    """
    asked = list(words or ())
    if asked[:1] in ([_SET], [_UNSET]):
        if config is not None or changed:
            raise UsageError(f"'levada settings {asked[0]}' takes neither --config nor --changed")
        _change(data, asked[0], asked[1:], json)
    else:
        _show(data, config, asked, changed, json)


def _show(data: Path, config: Path | None, asked: Sequence[str], changed: bool, json: bool) -> None:
    from levada.cli.given import given_settings
    from levada.collection.commands import commanded_budget
    from levada.core.folder import DataFolder

    folder = DataFolder(data, given_settings(config))
    is_there, found = folder.exists(), folder.configuration().report()
    commanded = commanded_budget(folder)
    keys = [key for key in _chosen(asked, found) if not changed or found[key].changed]
    shown = [found[key] for key in keys]
    if json:
        print_json({"data": str(data), "exists": is_there, "commanded_per_hour": commanded, "settings": shown})
        return
    _print(data, is_there, shown, explain=bool(asked))
    if commanded is not None and "budget.per_hour" in keys:
        print(f"budget.per_hour is {commanded} until a setting changes it: a control command said so.")


def _chosen(asked: Sequence[str], known: Iterable[str]) -> list[str]:
    """The settings of these names and sections; all if none is named."""
    from levada.core.configuration.values import check_name, is_setting

    names = list(known)
    chosen: list[str] = []
    for word in asked:
        of_section = [name for name in names if name.startswith(f"{word}.")]
        if not of_section and not (is_setting(word) and word not in names):
            check_name(word)
        chosen += of_section or [name for name in names if name == word]
    return list(dict.fromkeys(chosen)) if asked else names


def _print(data: Path, is_there: bool, values: Sequence[SettingValue], *, explain: bool) -> None:
    from rich.text import Text

    from levada.cli.terminal import printer
    from levada.core.configuration.values import shown
    from levada.core.words import line

    out = printer()
    if not is_there:
        out.print(f"There is no collection in {data} yet: a new one would have these settings.")
    width = max((len(each.key) for each in values), default=0)
    texts = [line(shown(each.value)) for each in values]
    room = min(24, max(map(len, texts), default=0))
    for each, text in zip(values, texts, strict=True):
        plain = each.source == "default"
        out.print(
            Text.assemble(
                (f"{each.key:<{width}}", "" if each.changed else "dim"),
                "  ",
                (f"{text:<{room}}", "bold" if each.changed else "dim"),
                "  ",
                (line(_origin(each)), "dim" if plain else "cyan"),
            )
        )
        if explain and not plain:
            out.print(Text(f"{'':<{width}}  default {line(shown(each.default))}", "dim"))
    if not values:
        out.print("All settings have their defaults.")


def _origin(value: SettingValue) -> str:
    """Where a value comes from, in words."""
    from levada.core.configuration.values import shown
    from levada.core.durations import moment

    parts = [value.source.value]
    if value.where:
        parts.append(f"by {value.where}" if value.source == "collection" else value.where)
    if value.at is not None:
        parts.append(moment(value.at))
    if value.kept is not None and value.kept != value.value:
        parts.append(f"the collection keeps {shown(value.kept)}")
    return ", ".join(parts)


def _change(data: Path, verb: str, words: Sequence[str], json: bool) -> None:
    import levada
    from levada.core.configuration.values import check_name, parse_value

    example = "politeness.delay=2" if verb == _SET else "politeness.delay"
    if not words:
        raise UsageError(f"which setting? as in: levada settings {verb} {example}")
    if verb == _SET and len(words) == 2 and "=" not in words[0]:
        words = ["=".join(words)]
    changes: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if verb == _UNSET:
            check_name(word)
        elif not equals:
            check_name(key)
            raise UsageError(f"{word} needs a value, as in: levada settings set {word}=VALUE")
        changes[key if equals else word] = parse_value(key, text) if verb == _SET else None
    with levada.open(data, create=False) as collection:
        done = collection.change_settings(changes, by="levada settings")
        status = collection.live()
        holds = collection.setting_sources()
    if json:
        print_json(
            {
                "changes": [{"effect": _effect(each, status is not None), "change": each} for each in done],
                "crawling": status is not None,
                "settings": [holds[key] for key in changes if key in holds],
            }
        )
        return
    for each in done:
        print(each, _effect_words(each, status), sep="")
    _say_rest(changes, done, holds)


def _effect(change: SettingChange, crawling: bool) -> str:
    from levada.core.configuration.following import takes_effect_at_once

    if not crawling:
        return "next command"
    return "at once" if takes_effect_at_once(change.key) else "next crawl"


def _effect_words(change: SettingChange, status: Any) -> str:
    effect = _effect(change, status is not None)
    if effect == "next command":
        return ""
    if effect == "next crawl":
        return "; takes effect when the crawl is started again"
    if any(stage.name == "catalog" for stage in status.stages):
        return "; the running crawl takes it up, workers that run already when they are started again"
    return "; the running crawl takes it up within a second"


def _say_rest(changes: Iterable[str], done: Sequence[SettingChange], holds: dict[str, SettingValue]) -> None:
    """What did not change, and what is stronger than the collection."""
    from levada.cli.given import given_settings
    from levada.core.configuration.values import masked, shown

    said = {each.key for each in done}
    given = given_settings(None)
    for key in changes:
        if key not in said:
            now = f"{key} is {shown(holds[key].value)} already" if key in holds else f"{key} was not set"
            print(f"nothing changed: {now}")
        if key in holds and holds[key].source == "environment":
            print(f"but {holds[key].where} is stronger, and says {shown(holds[key].value)}")
        elif key in given.file and key in holds and masked(key, given.file[key]) != holds[key].value:
            print(
                f"but levada.toml says {shown(masked(key, given.file[key]))}: a crawl that starts here goes back to it"
            )
