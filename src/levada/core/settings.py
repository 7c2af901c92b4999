"""Settings: the whole of levada.toml, typed, with a default for every key.

Seconds are float, sizes are bytes. An unknown key is an error that names the nearest known one: a setting that
is silently ignored is worse than none.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from levada.core.errors import PluginError, SettingsError
from levada.core.plugins import check_names, is_builtin
from levada.core.secrets import check_reference
from levada.core.site_rules.routes import check_proxies
from levada.core.site_rules.section import RULE_TYPES, SiteSettings, choices_of, doubled

log = logging.getLogger(__name__)

Positive = Annotated[float, Meta(gt=0, le=1e10)]  # three centuries of seconds: nothing is infinite
NotNegative = Annotated[float, Meta(ge=0, le=1e10)]
Count = Annotated[int, Meta(ge=1)]
CountOrNone = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]  # of a plug-in, built in or installed
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_MOST_CHARACTERS = 10_000_000  # of a settings file: whatever is longer is something else
_PAIR = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9.]+):[0-9]{1,5}")
_TABLE = re.compile(r"site\[(\d+)\]")
_MISSING = re.compile("Object missing required field `([^`]+)`")
_RENAMED = {  # old keys that are still read, for one version, by section
    "parse": {"kills": "max_kills"},
    "politeness": {
        "at_once": "max_concurrent",
        "max_rest": "max_backoff",
        "rest": "backoff",
        "rest_after": "backoff_after",
        "robots_seconds": "robots_ttl",
    },
    "stages": {"fetch_least": "min_fetch", "parse_least": "min_parse"},
}
_KINDS = {  # what msgspec calls them, and people do
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a section of keys",
}


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


def check_bodies(address: str) -> None:
    """ValueError unless this can be the address of a place for bodies, or names none."""
    parts = urlsplit(address)
    forms = '"s3://bucket/prefix" or "file:///folder"'
    if parts.scheme == "s3":
        if not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"bodies takes {forms}; keys and endpoints stand in [bodies], not in the address")
    elif address and (parts.scheme != "file" or parts.netloc not in ("", "localhost") or len(parts.path) < 2):
        raise ValueError(f"bodies takes {forms}, not {address[:100]!r}")


class CrawlSettings(_Section, frozen=True):
    """The extent of the crawl."""

    scope: Literal["sites", "any"] = "sites"  # the sites of the start URLs, or wherever links lead
    sitemaps: bool = True
    max_depth: Count = 20
    max_redirects: CountOrNone = 5
    max_url_length: Count = 2_000
    max_pages_per_site: Count = 100_000
    near_duplicate_run: Count = 20  # this many near-identical new pages of one URL pattern in a row are enough
    hooks: tuple[Name, ...] = ()  # called after a page is stored


class BudgetSettings(_Section, frozen=True):
    """The fetch budget. 0: no limit."""

    per_hour: CountOrNone = 0
    per_site_per_hour: CountOrNone = 0
    per_page_per_day: Positive = 4.0  # visits that a page is worth on average, where per_hour sets no limit


class PolitenessSettings(_Section, frozen=True):
    """Politeness towards sites."""

    agent: Annotated[str, Meta(min_length=1)] = "levada"  # the name that robots.txt is read for
    contact: str = ""  # an address that a site's owner may write to; goes into the User-Agent
    delay: NotNegative = 1.0  # between two requests to a site, unless its robots.txt asks for more
    max_concurrent: Count = 2  # requests to a site at the same time
    robots_ttl: Positive = DAY  # how long a robots.txt is used before it is fetched again
    robots_retry: Positive = 10 * MINUTE  # when one that failed is asked for again; nothing is fetched until then
    backoff_after: Count = 5  # failures in a row after which a site is left alone for a while
    backoff: Positive = 5 * MINUTE  # the first such pause; doubles up to max_backoff
    max_backoff: Positive = DAY


class FetchSettings(_Section, frozen=True):
    """Limits of one exchange."""

    fetcher: Name = "curl"
    slots: Annotated[int, Meta(ge=1, le=10_000)] = 64  # exchanges at the same time
    max_bytes: Count = 5 * 1024 * 1024
    max_decoded_bytes: Count = 10 * 1024 * 1024
    max_document_bytes: Count = 15 * 1024 * 1024  # of a PDF, office file, e-book or data, on the wire and decoded
    max_header_bytes: Count = 64 * 1024
    max_buffered_bytes: Annotated[int, Meta(ge=64 * 1024)] = 128 * 1024 * 1024  # of all exchanges together
    seconds: Positive = 30.0
    connect_seconds: Positive = 10.0
    min_rate: NotNegative = 100.0  # bytes per second, over min_rate_seconds
    min_rate_seconds: Positive = 8.0
    ca_file: str = ""  # the authorities to trust, PEM; "": the machine's own
    http2: bool = True
    proxy: tuple[str, ...] = ()  # addresses of proxies, or references to them, which take turns; none: directly

    def __post_init__(self) -> None:
        check_proxies(self.proxy)


class BrowserSettings(_Section, frozen=True):
    """The browser that renders pages, where a rule of their site asks for it."""

    command: str = ""  # the program; "": the Chromium that is installed
    pages: Annotated[int, Meta(ge=1, le=100)] = 2  # rendered at the same time
    seconds: Positive = 30.0  # for one page
    memory: Annotated[int, Meta(ge=64 * 1024 * 1024)] = 1024 * 1024 * 1024  # of the process of one page
    max_bytes: Count = 30 * 1024 * 1024  # that one page loads


class GuardSettings(_Section, frozen=True):
    """Non-public addresses that may be connected to. Exact `ip:port` pairs only."""

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for each in self.allow:  # whether the numbers make an address, the guard says
            if not _PAIR.fullmatch(each):
                raise ValueError(f'allow takes an exact "ip:port" such as "127.0.0.1:8080", not {each!r}')


class ParseSettings(_Section, frozen=True):
    """Reading of pages."""

    children: CountOrNone = 0  # processes; 0: one per core, less one
    memory: Count = 1024 * 1024 * 1024  # address space of a child
    cpu_seconds: Positive = 5.0  # for one page
    max_kills: Count = 3  # a page that ends its child this often is quarantined
    main_text: Name = "builtin"
    readers: tuple[Name, ...] = ()  # of content types beside those that are built in
    change_filters: tuple[Name, ...] = ()  # in this order, on the text that is compared


class StoreSettings(_Section, frozen=True):
    """The store, and what it keeps."""

    engine: Name = "sqlite"  # "postgresql" where there are servers
    keep_versions: Count = 10
    keep_days: NotNegative = 0.0  # older versions go, but not the newest of a page that is there; 0: no limit
    thin: bool = False  # of versions older than a day, keep one per day; older than thirty days, one per week
    new_share: Annotated[float, Meta(ge=0, le=1)] = 0.5  # of the fetches, for pages never visited, while both wait
    lease_seconds: Positive = 10 * MINUTE
    batch: Count = 200  # visits that share a commit, at most
    gather_seconds: NotNegative = 0.06  # that the first of them waits for others
    shards: Annotated[int, Meta(ge=1, le=256)] = 1  # of a new collection; 'levada shard apply' changes an old one
    key: Literal["site", "section", "url"] = "site"  # by which its pages are placed on them
    servers: tuple[str, ...] = ()  # PostgreSQL servers that hold them, in turn; none: files in the data folder
    statement_seconds: Positive = 30.0  # that a server may take for one answer to a crawl
    read_seconds: Positive = 2.5  # that it may take for one answer to a reader: search, why, server
    away_seconds: NotNegative = 60.0  # that a crawl waits for a server that is away
    bodies: str = ""  # s3://bucket/prefix or file:///folder that holds texts and bodies; "": with the rows

    def __post_init__(self) -> None:
        check_bodies(self.bodies)


class BodiesSettings(_Section, frozen=True):
    """The place of texts and bodies, where `store.bodies` names one."""

    endpoint: str = ""  # of a server that speaks S3, http or https; "": that of AWS, or as its environment says
    region: str = ""
    path_style: bool = True  # the bucket in the path of an address, not in its host
    access_key: str = ""  # the place of a key, such as "env:NAME"; "": as other programs of AWS find theirs
    secret_key: str = ""
    seconds: Positive = 20.0  # for one request and its repetitions
    parallel: Annotated[int, Meta(ge=1, le=256)] = 16  # requests at the same time
    least: CountOrNone = 4096  # bytes: what is smaller when packed stays in its row
    cache: CountOrNone = 64 * 1024 * 1024  # bytes of memory of each process for what was read last
    wait: NotNegative = HOUR  # that a crawl waits for a place that cannot be reached, before it ends

    def __post_init__(self) -> None:
        if self.endpoint and not self.endpoint.startswith(("http://", "https://")):
            raise ValueError(f"endpoint takes an http or https address, not {self.endpoint[:100]!r}")
        if bool(self.access_key) != bool(self.secret_key):
            raise ValueError("access_key and secret_key go together")
        for name in ("access_key", "secret_key"):
            if value := getattr(self, name):
                check_reference(name, value)


class IndexSettings(_Section, frozen=True):
    """Writing of the search index."""

    engine: Name = "tantivy"
    batch: Count = 2_000  # documents that share a commit, at most
    gather_seconds: NotNegative = 5.0  # that the first of them waits for others
    heap: Annotated[int, Meta(ge=16 * 1024 * 1024, le=4_000_000_000)] = 64 * 1024 * 1024


class SearchSettings(_Section, frozen=True):
    """Answering searches."""

    synonyms: str = ""  # a file of words that stand for each other; "": none
    hybrid: bool = False  # pages near in meaning are found too
    embedder: Name = "static"  # what makes vectors of texts for that


class RevisitSettings(_Section, frozen=True):
    """The revisit policy."""

    policy: Name = "learned"
    first: Positive = HOUR
    floor: NotNegative = 5 * MINUTE
    ceiling: Positive = 30 * DAY
    retry: Positive = 5 * MINUTE  # after a failure; doubles up to max_retry
    max_retry: Positive = DAY
    gone: Positive = DAY  # before a page that is gone or refused is looked at again; doubles up to the ceiling
    importance: dict[str, Positive] = {}  # what a page counts beside 1, by the beginning of its address


class TrendsSettings(_Section, frozen=True):
    """Counting of terms."""

    live: bool = False  # while the crawl runs; else when somebody asks
    workers: Annotated[int, Meta(ge=1, le=1_000)] = 4  # that share the counting
    grouping: Name = "levelled"
    batch: Count = 200  # changed documents that are counted in one round, at most
    window: Annotated[float, Meta(ge=1, le=DAY)] = HOUR
    keep: Annotated[float, Meta(ge=DAY, le=1e10)] = 30 * DAY  # how long news is kept
    rare: CountOrNone = 2  # a term that fewer changes of a day added is forgotten two days later
    page_terms: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000  # of one page that are counted, at most


class StagesSettings(_Section, frozen=True):
    """Workers of each stage: at most `fetch.slots`, `parse.children`, and one writer for each index."""

    controller: Name = "feed-forward"
    period: Annotated[float, Meta(ge=0.05, le=60)] = 0.25  # seconds of the wall between two looks
    min_fetch: Count = 4
    min_parse: CountOrNone = 0
    idle: Annotated[float, Meta(ge=0, le=DAY)] = 15.0  # seconds of the wall after which a process without work ends
    budget: CountOrNone = 0  # workers of all stages together; 0: only their own limits count


class NotifySettings(_Section, frozen=True):
    """Notifiers that the server calls with changes. Webhooks are set up over the API."""

    notifiers: tuple[Name, ...] = ()
    dashboard: str = ""  # its address as others open it, for links in what is sent; "": links lead to the pages

    def __post_init__(self) -> None:
        if self.dashboard and not self.dashboard.startswith(("http://", "https://")):
            raise ValueError(f"dashboard takes an http or https address, not {self.dashboard!r}")


class ClockSettings(_Section, frozen=True):
    """The speed of the clock. Only the bundled web changes it."""

    speed: Positive = 1.0
    origin: NotNegative = 0.0  # world time at `started`
    started: NotNegative = 0.0


class Settings(_Section, frozen=True):
    """All settings, by section; what is not named has its default.

    >>> levada.Settings.load("levada.toml").politeness.agent
    'levada'
    >>> levada.Settings().replace({"budget.per_hour": 100, "crawl.scope": "any"}).budget.per_hour
    100
    """

    crawl: CrawlSettings = CrawlSettings()
    budget: BudgetSettings = BudgetSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    fetch: FetchSettings = FetchSettings()
    browser: BrowserSettings = BrowserSettings()
    guard: GuardSettings = GuardSettings()
    parse: ParseSettings = ParseSettings()
    store: StoreSettings = StoreSettings()
    bodies: BodiesSettings = BodiesSettings()
    index: IndexSettings = IndexSettings()
    search: SearchSettings = SearchSettings()
    revisit: RevisitSettings = RevisitSettings()
    trends: TrendsSettings = TrendsSettings()
    stages: StagesSettings = StagesSettings()
    notify: NotifySettings = NotifySettings()
    clock: ClockSettings = ClockSettings()
    site: tuple[SiteSettings, ...] = ()  # rules of sites, by what they match
    plugins: dict[str, dict[str, Any]] = {}  # the options of plug-ins, by name

    def __post_init__(self) -> None:
        _check_matches(self.site)
        if not self.revisit.floor <= self.revisit.first <= self.revisit.ceiling:
            raise ValueError("revisit needs floor <= first <= ceiling")
        stages, slots, children = self.stages, self.fetch.slots, self.parse.children
        if children and stages.min_parse > children:
            raise ValueError("stages needs min_parse <= parse.children")
        store = self.store
        if store.engine == "postgresql" and not store.servers:
            raise ValueError('store.engine = "postgresql" needs store.servers')
        whole = store.shards == 1 and not store.servers
        of_shards = is_builtin("levada.stores", store.engine) and is_builtin("levada.indexes", self.index.engine)
        if not whole and not of_shards:
            raise ValueError("a plug-in as store.engine or index.engine needs store.shards = 1 and no store.servers")
        if stages.budget and stages.budget < min(stages.min_fetch, slots) + stages.min_parse:
            raise ValueError("stages needs budget >= min_fetch + min_parse")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Settings:
        """Read a levada.toml; `SettingsError` names the key that is wrong."""
        return load_settings(Path(path))

    def replace(self, values: Mapping[str, Any]) -> Settings:
        """The same with other values, by `section.key`."""
        rules = {name: value for name, value in values.items() if name.startswith("site.")}
        sections: dict[str, Any] = msgspec.to_builtins(self)
        if rules:
            others = {name: value for name, value in values_of(self).items() if name not in rules}
            given = {name: value for name, value in rules.items() if value is not None}
            sections["site"] = nested_values(others | check_rules(given)).get("site", [])
        for name, value in values.items():
            if name in rules:
                continue
            section, dot, key = name.partition(".")
            if not dot or not isinstance(sections.setdefault(section, {}), dict):
                raise SettingsError(f"a setting is named section.key, such as budget.per_hour, not {name!r}")
            sections[section][key] = value
        return convert_settings(sections, "settings")


def load_settings(path: Path) -> Settings:
    """Read a levada.toml."""
    return convert_settings(load_values(path), str(path))


def load_values(path: Path) -> dict[str, Any]:
    """The sections of a levada.toml as they stand there."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except FileNotFoundError:
        raise SettingsError(f"there is no settings file {path}") from None
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"cannot read {path}: {error}") from None
    if len(text) > _MOST_CHARACTERS:
        raise SettingsError(f"{path} is too long to be a settings file: name a levada.toml")
    return _parsed(text, str(path))


def parse_settings(text: str, where: str) -> Settings:
    return convert_settings(_parsed(text, where), where)


def _parsed(text: str, where: str) -> dict[str, Any]:
    import tomllib  # here: most crawls have no settings file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{where} is not TOML: {error}") from None


def convert_settings(values: dict[str, Any], where: str) -> Settings:
    """Settings from plain values; `SettingsError` names the key and what fits there.

    Keys that were renamed are read under their old names too, with one warning that names the new ones.
    """
    values, renamed = _with_new_keys(values, where)
    if renamed:
        log.warning("%s: old keys, read until the next version: %s", where, ", ".join(renamed))
    _refuse_unknown(values, where)
    with _told_of(where, values.get("site", ())):
        settings = msgspec.convert(values, Settings, strict=True)
        check_names(settings)
    return settings


def checked_values(values: dict[str, Any], where: str, *, names: bool = True) -> dict[str, Any]:
    """The values by `section.key`, each checked alone: values elsewhere may complete them. See `combined_settings`.

    `names` tells whether the plug-ins that they name must be there.
    """
    values, renamed = _with_new_keys(values, where)
    if renamed and names:
        log.warning("%s: old keys, read until the next version: %s", where, ", ".join(renamed))
    _refuse_unknown(values, where)
    with _told_of(where, values.get("site", ())):
        sections = msgspec.convert(values, _alone(), strict=True)
        if names:
            check_names(sections)
        _check_matches(getattr(sections, "site", ()))
    plain = msgspec.to_builtins(sections)
    return flat_values(
        {
            name: plain[name] if name == "site" else {key: plain[name][key] for key in section}
            for name, section in values.items()
        }
    )


def combined_settings(values: Mapping[str, Any], where: str) -> Settings:
    """Settings from values by `section.key` that were checked alone; `SettingsError` if they contradict each other."""
    with _told_of(where):
        return msgspec.convert(nested_values(values), Settings)


def check_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Values of site rules by `site.match.key`, checked; the matches as they are kept."""
    tables = nested_values(rules).get("site", [])
    return checked_values({"site": tables}, "")


def _check_matches(sites: tuple[SiteSettings, ...]) -> None:
    if twice := doubled(each.match for each in sites):
        raise msgspec.ValidationError(f'two [[site]] tables have match = "{twice}": put them together')


def flat_values(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Values by `section.key`, site rules by `site.match.key`, options of plug-ins by `plugins.name.option`."""
    found: dict[str, Any] = {}
    for section, values in sections.items():
        if section == "site":
            for table in values:
                found |= {f"site.{table['match']}.{key}": each for key, each in table.items() if key != "match"}
            continue
        for key, value in values.items():
            if section == "plugins":
                found |= {f"plugins.{key}.{option}": each for option, each in value.items()}
            else:
                found[f"{section}.{key}"] = value
    return found


def nested_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of `flat_values`."""
    sections: dict[str, Any] = {}
    tables: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        if section == "site":
            match, _, key = key.rpartition(".")
            tables.setdefault(match, {"match": match})[key] = value
            continue
        place = sections.setdefault(section, {})
        if section == "plugins":
            plugin, _, key = key.rpartition(".")
            place = place.setdefault(plugin, {})
        place[key] = value
    if tables:
        sections["site"] = list(tables.values())
    return sections


def values_of(settings: Settings) -> dict[str, Any]:
    """All values by `section.key`, as plain data."""
    return flat_values(msgspec.to_builtins(settings))


@contextmanager
def _told_of(where: str, tables: Sequence[dict[str, Any]] = ()) -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError as error:
        said = _readable(str(error))
        if tables and (found := _TABLE.match(said)):
            said = f'[[site]] "{tables[int(found[1])].get("match", "")}"{said[found.end() :]}'
        raise SettingsError(f"{where}: {said}" if where else said) from None
    except PluginError as error:
        raise SettingsError(f"{where}: {error}" if where else str(error)) from None


@cache
def _alone() -> Any:
    """The sections without the rules that concern several of them."""
    sections: list[Any] = []
    for each in msgspec.structs.fields(Settings):
        given = each.default_factory is not msgspec.NODEFAULT
        sections.append(
            (each.name, each.type, msgspec.field(default_factory=each.default_factory) if given else each.default)
        )
    return msgspec.defstruct("Sections", sections, bases=(_Section,), frozen=True, kw_only=True)


def saved_settings(content: bytes) -> Settings:
    """Settings as a data folder or a server keeps them (JSON), also those that an older Levada wrote."""
    values = msgspec.json.decode(content)
    if isinstance(values, dict):
        values.pop("kept", None)  # where the values of a data folder come from
        values, _ = _with_new_keys(values, "the saved settings")
    return msgspec.convert(values, Settings)


def _with_new_keys(values: dict[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    """The values under their new keys, and what was renamed, in words."""
    renamed: list[str] = []
    for name, keys in _RENAMED.items():
        section = values.get(name)
        if not isinstance(section, dict) or keys.keys().isdisjoint(section):
            continue
        for old in keys.keys() & section.keys():
            if keys[old] in section:
                raise SettingsError(f"{where}, [{name}]: {old} is the old name of {keys[old]}: remove one of them")
        renamed += [f"{name}.{key} is now {name}.{keys[key]}" for key in section if key in keys]
        values = {**values, name: {keys.get(key, key): value for key, value in section.items()}}
    return values, renamed


def _refuse_unknown(values: dict[str, Any], where: str) -> None:
    sections = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name, section in values.items():
        if name == "site":
            _refuse_unknown_rules(section, where)
            continue
        what = f"section {name!r}" if isinstance(section, dict) else f"key {name!r} outside the sections"
        _refuse_key(name, list(sections), where, what)
        if isinstance(section, dict) and name != "plugins":
            known = [field.name for field in msgspec.structs.fields(sections[name])]
            for key in section:
                _refuse_key(key, known, f"{where}, [{name}]", f"key {key!r}")


def _refuse_unknown_rules(tables: Any, where: str) -> None:
    if not isinstance(tables, list | tuple) or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"{where}: rules of sites are tables: write [[site]], with two brackets")
    for table in tables:
        for key in table:
            known = ["match", *RULE_TYPES]
            _refuse_key(key, known, f'{where}, [[site]] "{table.get("match", "")}"', f"key {key!r}")


def _refuse_key(key: str, known: list[str], where: str, what: str) -> None:
    if key not in known:
        raise SettingsError(f"{where}: unknown {what}; {_meant(key, known)}")


def _meant(key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    sections = msgspec.structs.fields(Settings)
    if homes := [f"[{each.name}]" for each in sections if key in getattr(each.type, "__struct_fields__", ())]:
        return f"did you mean {key} in {' or '.join(homes)}?"  # it only stands in the wrong place
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def _readable(message: str) -> str:
    """`Expected `int` >= 1 - at `$.fetch.slots`` -> `fetch.slots: expected a whole number >= 1`."""
    said, _, place = message.partition(" - at `$.")
    said = _MISSING.sub(r"\1 is missing", said)
    for kind, word in _KINDS.items():
        said = said.replace(f"`{kind}`", word).replace(f"`{kind} | null`", word)
    said, place = said.replace("`", ""), place.rstrip("`")
    if choices := _choices(place):
        wrong = said.removeprefix("Invalid enum value ")
        return f"{place} must be {choices}" + (f", not {wrong}".replace("'", '"') if wrong != said else "")
    return f"{place}: {said[:1].lower()}{said[1:]}" if place else said


def _choices(place: str) -> str:
    """What fits, where that is one of a few words."""
    section, _, key = place.partition(".")
    holder = SiteSettings if _TABLE.fullmatch(section) else getattr(Settings(), section, Settings())
    kinds = {field.name: field.type for field in msgspec.structs.fields(holder)}
    *others, last = [f'"{each}"' for each in choices_of(kinds.get(key))] or [""]
    return f"{', '.join(others)} or {last}" if others else last
