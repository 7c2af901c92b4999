"""Single settings: their names, values typed as text, values as text, and secrets masked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import msgspec

from levada.core.errors import SettingsError
from levada.core.secrets import is_reference
from levada.core.settings import Settings, checked_values
from levada.core.site_rules.reading import WHOLE_TEXTS
from levada.core.site_rules.section import RULE_TYPES, tidy_match
from levada.core.suggestions import near_names

MASK = "****"
_OPTION = re.compile(r"plugins\.[^=]+\.[^.=]+")
_RULE = re.compile(r"site\.([^=]+)\.([^.=]+)")
_PASSWORD_OF_URL = re.compile(r"(?<=://)([^:/@\s]*):[^@\s]*(?=@)")
_PASSWORD_OF_DSN = re.compile(r"(?i)\b((?:password|sslpassword)\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)")
_SECRET_NAME = re.compile(r"(?i)password|passwd|secret|token|api[_-]?key|credential|authorization|cookie")
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


@cache
def setting_types() -> dict[str, Any]:
    """The type of every setting by `section.key`; the options of plug-ins have none."""
    found = {}
    for section in msgspec.structs.fields(Settings):
        for key in msgspec.structs.fields(section.type) if section.name not in ("plugins", "site") else ():
            found[f"{section.name}.{key.name}"] = key.type
    return found


def is_setting(name: str) -> bool:
    return name in setting_types() or bool(_OPTION.fullmatch(name)) or _rule_key(name) in RULE_TYPES


def kept_name(name: str) -> str:
    """The name under which a setting is kept: that of a site rule has its match as it is kept."""
    found = _RULE.fullmatch(name)
    if found is None:
        return name
    try:
        return f"site.{tidy_match(found[1])}.{found[2]}"
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _rule_key(name: str) -> str:
    """The key of a site rule that is named `site.match.key`; "" if it is none."""
    found = _RULE.fullmatch(name)
    return found[2] if found else ""


def check_name(name: str) -> None:
    """`SettingsError` with the nearest name unless there is such a setting."""
    if is_setting(name):
        return
    if key := _rule_key(name):
        raise SettingsError(f"a rule of a site has no key {key[:100]!r}: {near_names(key, RULE_TYPES)}")
    names = setting_types()
    own = [each for each in names if each.partition(".")[2] == name]  # the section is missing
    hint = f"did you mean {' or '.join(own)}?" if own else near_names(name, names)
    raise SettingsError(f"there is no setting {name[:100]!r}: {hint}")


def parse_value(name: str, text: str) -> Any:
    """The value of a setting that was typed: `2`, `true`, `any`, or a list such as `["a", "b"]` or `a,b`."""
    check_name(name)
    kind = _plain(setting_types().get(name) or _without_none(RULE_TYPES.get(_rule_key(name))))
    if kind is None:
        return _option(text)
    if kind is bool:
        return _checked_bool(name, text)
    if kind in (int, float):
        return _number(name, text, kind)
    if get_origin(kind) is tuple:
        return _list(name, text)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _toml(name, text, 'a table such as { url = "/login", fields = { user = "me", password = "env:NAME" } }')
    if get_origin(kind) is dict:
        return _toml(name, text, 'a table such as {"https://example.org/news/" = 5}')
    return _unquoted(text)


def _without_none(kind: Any) -> Any:
    return next((each for each in get_args(kind) if each is not type(None)), kind)


def _plain(kind: Any) -> Any:
    """The type without its limits."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _checked_bool(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in (*_YES, *_NO):
        raise SettingsError(f"{name} must be true or false, not {text[:100]!r}")
    return word in _YES


def _number(name: str, text: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(text.strip())
    except (ValueError, OverflowError):
        what = "a whole number" if kind is int else "a number"
        raise SettingsError(f"{name} must be {what}, not {text[:100]!r}") from None


def _list(name: str, text: str) -> Any:
    is_whole = _rule_key(name) in WHOLE_TEXTS
    if text.lstrip().startswith("["):
        try:
            return _toml(name, text, 'a list such as ["a", "b"]')
        except SettingsError:
            if not is_whole:
                raise
    if is_whole or text.lstrip().startswith("re:"):  # it may have commas of its own
        return [_unquoted(text)]
    return [_unquoted(each) for each in text.split(",") if each.strip()]


def _toml(name: str, text: str, wanted: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raise SettingsError(f"{name} must be {wanted}, not {text[:100]!r}") from None


def _option(text: str) -> Any:
    """The option of a plug-in: TOML, or else text."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _unquoted(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def check_values(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Values by `section.key`, checked one by one; as plain data of the right types."""
    from levada.core.settings import nested_values

    for name in values:
        check_name(name)
    return checked_values(nested_values(values), where)


def shown(value: Any) -> str:
    """A value as it stands in a levada.toml; 1 for 1.0."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        inner = ", ".join(f"{msgspec.json.encode(key).decode()} = {shown(each)}" for key, each in value.items())
        return f"{{{inner}}}"
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, list | tuple) else str(value)


def masked(name: str, value: Any) -> Any:
    """The value without passwords."""
    if isinstance(value, dict):
        return {key: masked(f"{name}.{key}", each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [masked(name, each) for each in value]
    if isinstance(value, bool):
        return value
    if name.startswith(("site.", "fetch.proxy")) and isinstance(value, str) and is_reference(value):
        return value  # it says where a secret lies
    if name.startswith(("plugins.", "site.")) and value and _SECRET_NAME.search(name.rpartition(".")[2]):
        return MASK
    if isinstance(value, str):
        value = _PASSWORD_OF_URL.sub(rf"\1:{MASK}", value)
        value = _PASSWORD_OF_DSN.sub(rf"\1{MASK}", value)
    return value


def is_secret(name: str, value: Any) -> bool:
    return bool(masked(name, value) != value)


def names_in_order(names: Iterable[str]) -> list[str]:
    """As in docs/settings.md; the options of plug-ins last."""
    order = {name: place for place, name in enumerate(setting_types())}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))
