"""Plug-ins: every extension point by name, built in or from an installed package, and what contains their failures.

A package offers a plug-in as an entry point of one of `GROUPS`. Built-ins stand in the same table and are made by
the same `load`; they are found first, so that a process that uses no plug-in never scans the installed packages.
Nothing is imported before it is used.

An entry point is a class or a factory. It is called with the options of its `[plugins.NAME]` table as one mapping,
if there is such a table, and with those of the group's keyword arguments that it has parameters for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from levada.core.errors import LevadaError, PluginError, StoreError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from importlib.metadata import EntryPoint

    from levada.core.settings import Settings

PROTOCOL = 1
"""The version of the protocols. A plug-in names the one that it was written for as `levada_protocol`."""

T = TypeVar("T")


class Group(msgspec.Struct, frozen=True):
    """An extension point: what chooses its plug-ins, what each must have, and those that are built in."""

    setting: str
    members: tuple[str, ...]
    builtins: Mapping[str, str]  # name -> "module:attribute"
    given: tuple[str, ...] = ()  # keyword arguments that a factory may take
    with_options: tuple[str, ...] = ()  # those of the built-ins that have a table of options, as plug-ins may


def _functions(module: str, names: str) -> dict[str, str]:
    """Built-ins that are functions of one module of Levada: `nutch-22` is made by `nutch_22`."""
    return {name: f"levada.{module}:{name.replace('-', '_')}" for name in names.split()}


GROUPS: dict[str, Group] = {
    "levada.readers": Group(
        "parse.readers",
        ("content_types", "read"),
        {
            "html": "levada.pages.parse:HtmlReader",
            "text": "levada.pages.parse:TextReader",
            "sitemap": "levada.pages.parse:SitemapReader",
            "feed": "levada.pages.parse:FeedReader",
            "pdf": "levada.pages.documents.pdf:PdfReader",
            "word": "levada.pages.documents.word:WordReader",
            "spreadsheet": "levada.pages.documents.spreadsheet:SpreadsheetReader",
            "presentation": "levada.pages.documents.presentation:PresentationReader",
            "opendocument": "levada.pages.documents.opendocument:OpenDocumentReader",
            "epub": "levada.pages.documents.epub:EpubReader",
            "csv": "levada.pages.documents.data:CsvReader",
            "json": "levada.pages.documents.data:JsonReader",
            "xml": "levada.pages.documents.data:XmlTextReader",
        },
    ),
    "levada.extractors": Group(
        "parse.main_text",
        ("extract",),
        {"builtin": "levada.pages.text:BuiltinExtractor", "trafilatura": "levada.pages.text:TrafilaturaExtractor"},
    ),
    "levada.change_filters": Group("parse.change_filters", ("filter",), {}),
    "levada.fetchers": Group(
        "fetch.fetcher",
        ("fetch", "close"),
        {"curl": "levada.fetch:CurlFetcher"},
        ("limits", "guard", "agent", "ca_file", "connections", "http2"),
    ),
    "levada.policies": Group(
        "revisit.policy",
        (),  # a policy has `plan`, a rule has `step`: `levada.freshness.rules` tells them apart
        {
            "learned": "levada.freshness.learned:LearnedRevisit",
            **_functions("freshness.paper", "ema real-time"),
            **_functions("freshness.rules", "fixed"),
            **_functions("freshness.crawlers", "nutch nutch-22 stormcrawler cho"),
        },
        ("first", "floor", "ceiling", "estimates", "per_hour", "per_page_per_day", "per_site"),
    ),
    "levada.groupings": Group(
        "trends.grouping",
        ("choose", "choose_many"),
        _functions("grouping.methods", "shuffle key partial dynamic dynamic-text d-choices w-choices levelled"),
        ("workers", "hashers", "sender"),
    ),
    "levada.controllers": Group(
        "stages.controller",
        ("name", "step", "width", "parameters"),
        {
            **_functions("stages.autoscalers", "static"),
            **_functions("stages.report", "linear linear-as-written drain-time drain-time-as-written"),
            **_functions("stages.autoscalers", "hpa keda ds2"),
            **_functions("stages.feed_forward", "feed-forward"),
        },
        ("least", "most", "period", "startup"),
    ),
    "levada.stores": Group(
        "store.engine",
        ("lease", "commit", "document", "changes", "close"),
        {"sqlite": "levada.store.sqlite:SqliteStore", "postgresql": "levada.store.postgresql:PostgresqlStore"},
        ("path", "limits", "faults", "read_only"),
    ),
    "levada.indexes": Group(
        "index.engine",
        ("apply", "position", "search", "postings", "clear", "close"),
        {
            "tantivy": "levada.search.tantivy.index:TantivyIndex",
            "opensearch": "levada.search.opensearch.index:OpenSearchIndex",
        },
        ("path", "writer", "heap_bytes", "text_of"),
        with_options=("opensearch",),
    ),
    "levada.embedders": Group(
        "search.embedder",
        ("model", "dimensions", "least_similarity", "embed", "embed_query"),
        {"static": "levada.search.hybrid.static:StaticEmbedder"},
    ),
    "levada.exporters": Group(
        "--format",
        ("suffix", "export"),
        {
            "jsonl": "levada.export.rows:JsonlExporter",
            "jsonl-markdown": "levada.export.markdown:MarkdownJsonExporter",
            "markdown": "levada.export.markdown:MarkdownExporter",
            "parquet": "levada.export.parquet:ParquetExporter",
            "warc": "levada.export.warc:WarcExporter",
            "xml": "levada.export.xml:XmlExporter",
        },
    ),
    "levada.notifiers": Group(
        "notify.notifiers",
        ("notify",),
        {"webhook": "levada.follow.notify.sender:WebhookNotifier"},
        ("hook", "fetcher", "clock", "facts"),
    ),
    "levada.hooks": Group("crawl.hooks", ("after_page",), {}),
}
"""All extension points by their entry-point group; docs/plugins.md has a section for each."""


class Installed(msgspec.Struct, frozen=True):
    """One line of `levada plugins`."""

    group: str
    name: str
    source: str  # "built in", or the distribution and its version
    trouble: str = ""  # why it cannot be used; "": it can


def known(group: str) -> list[str]:
    """The names of a group, built in and installed, in order."""
    return sorted({*GROUPS[group].builtins, *(entry.name for entry in _entries(group))})


def is_builtin(group: str, name: str) -> bool:
    return name in GROUPS[group].builtins


def find(group: str, name: str, asked_by: str = "") -> Callable[..., Any]:
    """The class or factory of this name, imported; `PluginError` says in one sentence why it cannot be had.

    `asked_by` is the option that named it, if that is not the group's setting.
    """
    place = GROUPS[group]
    asked_by = asked_by or place.setting
    if target := place.builtins.get(name):
        module, _, attribute = target.partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
    entries = [entry for entry in _entries(group) if entry.name == name]
    if not entries:
        raise PluginError(f"{asked_by}: {_unknown(name, known(group))}")
    if len(entries) > 1:
        sources = " and ".join(sorted(map(_source, entries)))
        raise PluginError(f'{asked_by}: two plug-ins are called "{name}", of {sources}: uninstall one of them')
    what = f'{asked_by}: the plug-in "{name}" of {_source(entries[0])}'
    try:
        factory = entries[0].load()
    except (Exception, SystemExit) as error:
        raise PluginError(f"{what} cannot be imported ({_said(error)})") from error
    if not callable(factory):
        raise PluginError(f"{what} is {type(factory).__name__}, and must be a class or a factory")
    _check_version(what, factory)
    return factory  # type: ignore[no-any-return]


def load(group: str, name: str, options: Mapping[str, Any] | None = None, **given: Any) -> Any:
    """The plug-in of this name, made with its options and with what it takes of `given`."""
    factory = find(group, name)
    own = is_builtin(group, name)
    if own and options is not None and name not in GROUPS[group].with_options:
        raise PluginError(f'plugins.{name}: "{name}" is built in, and has no options of its own')
    what = f'{GROUPS[group].setting}: the plug-in "{name}"'
    arguments = () if options is None else (options,)
    try:
        made = factory(*arguments, **_taken(factory, given))
    except LevadaError:
        raise
    except Exception as error:
        if own:
            raise
        raise PluginError(f"{what} cannot be created ({_said(error)})") from error
    if not own:
        _check_version(what, made)
        if missing := [member for member in GROUPS[group].members if not hasattr(made, member)]:
            raise PluginError(f"{what} has no {', '.join(missing)}: see docs/plugins.md for what it needs")
    return made


def installed() -> Iterator[Installed]:
    """All plug-ins of all groups, each imported once to see whether it can be used."""
    for group, place in GROUPS.items():
        for name in place.builtins:
            yield Installed(group, name, "built in", _trouble(group, name))
        for entry in sorted(_entries(group), key=lambda each: (each.name, _source(each))):
            trouble = f'the name "{entry.name}" is taken by a built-in' if entry.name in place.builtins else ""
            yield Installed(group, entry.name, _source(entry), trouble or _trouble(group, entry.name))


def check_names(settings: Settings) -> None:
    """Raise `PluginError` if a setting names a plug-in that there is not. Built-in names cost no scan."""
    for group, place in GROUPS.items():
        section, _, key = place.setting.partition(".")
        if not key:
            continue
        value = getattr(getattr(settings, section), key)
        for name in (value,) if isinstance(value, str) else value:
            if name not in place.builtins and name not in (names := known(group)):
                raise PluginError(f"{place.setting}: {_unknown(name, names)}")
    if settings.plugins:
        own = {name for place in GROUPS.values() for name in place.with_options}
        if own.issuperset(settings.plugins):
            return
        names = sorted(own.union(entry.name for group in GROUPS for entry in _entries(group)))
        for name in settings.plugins:
            if name not in names:
                raise PluginError(f"plugins.{name}: {_unknown(name, names)}")


def _entries(group: str) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # here: most processes use no plug-in

    return list(entry_points(group=group))


def _source(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _trouble(group: str, name: str) -> str:
    try:
        find(group, name)
    except Exception as error:  # a built-in may lack an extra
        return str(error)
    return ""


def _unknown(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=1, cutoff=0.5)
    meant = f' (did you mean "{near[0]}"?)' if near else ""
    return f'no plug-in "{name}"; known: {", ".join(names) or "none"}{meant}'


def _check_version(what: str, made: object) -> None:
    version = getattr(made, "levada_protocol", PROTOCOL)
    if version != PROTOCOL:
        raise PluginError(
            f"{what} is written for version {version} of the protocol, and this Levada has version {PROTOCOL}: "
            "install a version of it that fits"
        )


def _taken(factory: Callable[..., Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the arguments that the factory has parameters for."""
    if not given:
        return given
    import inspect

    parameters = inspect.signature(factory).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return given
    return {key: value for key, value in given.items() if key in parameters}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_failures: dict[str, int] = {}
_counting = Lock()


def failures() -> dict[str, int]:
    """How often each plug-in failed in this process, by `setting:name`."""
    with _counting:
        return dict(_failures)


def note_failure(group: str, name: str, error: BaseException | str, *, ended: bool = False) -> None:
    """Count a failure. The first of each plug-in is logged, and the one with which it was `ended` for the run."""
    key = f"{GROUPS[group].setting}:{name}"
    with _counting:
        _failures[key] = count = _failures.get(key, 0) + 1
    if count == 1 or ended:
        import logging

        said = error if isinstance(error, str) else _said(error)
        then = "it is turned off for this run" if ended else "further failures are only counted"
        logging.getLogger(__name__).warning("plugin: %s failed (%s); %s", key, said, then)


def call(method: Callable[[T], object], argument: T) -> None:
    """Call a method that returns nothing. An async one would do nothing at all: it fails."""
    returned = method(argument)
    if hasattr(returned, "__await__"):
        getattr(returned, "close", lambda: None)()
        raise TypeError(f"{getattr(method, '__name__', 'it')} must not be async")


class Containment:
    """Decisions of one plug-in, made on a thread of its own with a deadline; a default where it fails.

    After `most` failures in a row the default decides for the rest of the run. A call that hangs keeps the thread:
    the calls after it fail at their deadline too, so that a plug-in is never called by two threads at once.
    """

    def __init__(self, group: str, name: str, *, seconds: float = 1.0, most: int = 3) -> None:
        self._group, self._name = group, name
        self._seconds, self._left, self._most = seconds, most, most
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] | None = None

    @property
    def given_up(self) -> bool:
        return self._left <= 0

    def decide(self, decision: Callable[[], T], default: Callable[[], T]) -> T:
        """The plug-in's decision, or the default's if that raises, takes too long, or was given up."""
        if self._left > 0:
            try:
                found = self._in_time(decision)
            except Exception as error:
                self._left -= 1
                note_failure(self._group, self._name, error)
            else:
                self._left = self._most
                return found
        return default()

    def _in_time(self, decision: Callable[[], T]) -> T:
        from concurrent.futures import Future

        if self._jobs is None:
            self._jobs = SimpleQueue()
            Thread(target=_work, args=(self._jobs,), name=f"plugin {self._name}", daemon=True).start()
        answer: Future[T] = Future()
        self._jobs.put((decision, answer))
        try:
            return answer.result(self._seconds)
        except TimeoutError:
            if answer.done():  # the plug-in's own
                raise
            raise TimeoutError(f"no decision within {self._seconds:g} s") from None


def _work(jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]]) -> None:
    while True:
        settle(*jobs.get())


def settle(work: Callable[[], T], future: Future[T]) -> None:
    """Do the work of a plug-in. What it raises is the future's, SystemExit too: it ends no thread of ours."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(_said(error)))


class _Translating:
    def __init__(self, group: str, name: str, made: Any) -> None:
        self._group, self._name, self._made = group, name, made

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._made, attribute)
        if not callable(found):
            return found

        def called(*arguments: Any, **named: Any) -> Any:
            try:
                return found(*arguments, **named)
            except LevadaError:
                raise
            except Exception as error:
                note_failure(self._group, self._name, error)
                what = f'{GROUPS[self._group].setting}: the plug-in "{self._name}" failed'
                raise StoreError(f"{what} ({_said(error)})") from error

        return called


def translating(group: str, name: str, made: T) -> T:
    """A store or an index whose own errors become a `StoreError`: the crawl ends as with a full disk."""
    return _Translating(group, name, made)  # type: ignore[return-value]
