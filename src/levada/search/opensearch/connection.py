"""The line to OpenSearch: options, the client, and its errors as sentences of ours.

A request goes to the next host where one does not answer. Every request may be repeated: a write carries the version
of what it writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from levada.core.errors import IndexAway, LevadaError, MissingExtra, SettingsError, StoreError, StoreFull, StoreTooNew
from levada.core.secrets import check_reference, read_secret

OLDEST = 2  # the major version
WAITS = "what is not indexed yet waits in the change log"
_MOST_SAID = 200  # characters of an answer that a message repeats
_SHORTEST_NAME = 1
_ALSO_TRIED = 3
_DEFAULT_PORTS = {"http": 9200, "https": 9200}
_HERE = "plugins.opensearch"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[plugins.opensearch]`."""

    hosts: tuple[str, ...] = ("http://localhost:9200",)
    user: str = ""
    password: str = ""  # a reference, see `levada.core.secrets`
    ca_file: str = ""  # certificates to trust besides those of the system
    prefix: str = "levada"  # of the names of the indexes
    shards: int = 1  # of a new index
    replicas: int = 1  # at most: as many as there are other nodes
    seconds: float = 30.0  # to wait for an answer

    def __post_init__(self) -> None:
        if not self.hosts:
            raise ValueError("hosts names no server")
        for host in self.hosts:
            _checked(host)
        if not (self.prefix.isascii() and self.prefix.isalnum() and self.prefix == self.prefix.lower()):
            raise ValueError(f"prefix must be lower-case letters and digits, not {self.prefix[:50]!r}")
        if bool(self.user) != bool(self.password):
            raise ValueError("user and password belong together: one of them is missing")
        if self.password:
            check_reference("password", self.password)
        if self.shards < 1 or self.replicas < 0 or self.seconds <= 0:
            raise ValueError("shards and seconds must be positive, and replicas not negative")


def options_of(given: Mapping[str, Any] | None) -> Options:
    try:
        return msgspec.convert(dict(given or {}), Options, strict=True)
    except (msgspec.ValidationError, ValueError) as error:
        raise SettingsError(f"{_HERE}: {error}") from None


def _checked(host: str) -> None:
    try:
        parts = urlsplit(host)
        named = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        named = False
    if named and (parts.username or parts.password):
        raise ValueError("hosts must hold no password: write user and password as options of their own")
    if not named or parts.query or parts.fragment:
        raise ValueError(f"hosts takes addresses like https://search-1:9200, not {host[:80]!r}")


class Connection:
    """A client that is opened with the first request. Threads may share it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._client: Any = None
        self._major = 0

    @property
    def place(self) -> str:
        return " and ".join(self.options.hosts)

    @property
    def major(self) -> int:
        """The major version of the server."""
        self.client()
        return self._major

    def client(self) -> Any:
        if self._client is None:
            made = self._made()
            with self.translated():
                self._major = self._checked_version(made.info())
            self._client = made
        return self._client

    def version(self) -> str:
        with self.translated():
            return str(self.client().info()["version"]["number"])

    def health(self, index: str) -> Mapping[str, Any]:
        with self.translated():
            return cast(Mapping[str, Any], self.client().cluster.health(index=index))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn every failure in the block into an error of ours."""
        import opensearchpy.exceptions as failures

        try:
            yield
        except LevadaError:
            raise
        except failures.SSLError as error:
            raise IndexAway(
                f"OpenSearch at {self.place} has a certificate that is not trusted ({_first_line(error)}): "
                f"name the file of its authority as {_HERE}.ca_file"
            ) from error
        except failures.ConnectionTimeout as error:
            raise IndexAway(
                f"OpenSearch at {self.place} does not answer within {self.options.seconds:g} s: "
                f"look at its load, or raise {_HERE}.seconds; {WAITS}"
            ) from error
        except failures.ConnectionError as error:
            raise IndexAway(
                f"OpenSearch at {self.place} cannot be reached ({_first_line(error)}): start it, or correct "
                f"{_HERE}.hosts; {WAITS}"
            ) from error
        except failures.TransportError as error:
            raise self.refusal(error.status_code, str(error.error), said(error.info)) from error
        except (failures.OpenSearchException, KeyError, TypeError) as error:
            raise StoreError(
                f"what answers at {self.place} is no OpenSearch ({_first_line(error)}): correct {_HERE}.hosts"
            ) from error

    def refusal(self, status: int | str, kind: str, reason: str) -> StoreError:
        """The error for an answer that says no."""
        if status == 401:
            what = "does not know this user and password" if self.options.user else "asks for a user and a password"
            return IndexAway(f"OpenSearch at {self.place} {what}: set {_HERE}.user and {_HERE}.password; {WAITS}")
        if status == 403 and "block" not in kind:
            who = self.options.user or "who has no name"
            return IndexAway(
                f"OpenSearch at {self.place} refuses the user {who} ({reason}): give it the rights to read, write "
                f"and manage {self.options.prefix}-*; {WAITS}"
            )
        if kind == "index_not_found_exception":
            return IndexAway(f"the index in OpenSearch at {self.place} was built anew meanwhile; {WAITS}")
        if kind == "cluster_block_exception" and "read-only" in reason:
            return StoreFull(
                f"the disks of OpenSearch at {self.place} are nearly full, so it takes no more ({reason}): "
                f"make room; {WAITS}"
            )
        if status in (502, 503, 504, 429) or kind in _UNAVAILABLE:
            return IndexAway(
                f"OpenSearch at {self.place} cannot answer for the index now ({kind}: {reason}): bring its nodes back, "
                f"GET /_cluster/health names what is missing; {WAITS}"
            )
        return StoreError(f"OpenSearch at {self.place} refused a request ({kind}: {reason})")

    def _made(self) -> Any:
        try:
            from opensearchpy import OpenSearch
        except ImportError:
            raise MissingExtra("opensearch-py", "opensearch") from None
        logging.getLogger("opensearch").setLevel(logging.CRITICAL)  # what fails is raised
        options = self.options
        if options.ca_file and not Path(options.ca_file).is_file():
            raise SettingsError(f"{_HERE}.ca_file: there is no file {options.ca_file}")
        return OpenSearch(
            [_host(each) for each in options.hosts],
            http_auth=(options.user, read_secret(options.password)) if options.user else None,
            ca_certs=options.ca_file or None,
            timeout=options.seconds,
            max_retries=_ALSO_TRIED + 2 * len(options.hosts),
            retry_on_status=(502,),
            pool_maxsize=16,
        )

    def _checked_version(self, info: Mapping[str, Any]) -> int:
        version = info["version"]
        number = str(version["number"])
        if version.get("distribution") != "opensearch":
            raise StoreError(
                f"what answers at {self.place} is Elasticsearch {number} or another server, not OpenSearch: "
                f"correct {_HERE}.hosts"
            )
        major = int(number.partition(".")[0])
        if major < OLDEST:
            raise StoreError(f"OpenSearch at {self.place} is {number}, and too old: update it to {OLDEST}.19 or later")
        return major


_UNAVAILABLE = frozenset(
    {
        "cluster_block_exception",
        "cluster_manager_not_discovered_exception",
        "es_rejected_execution_exception",
        "master_not_discovered_exception",
        "no_shard_available_action_exception",
        "node_not_connected_exception",
        "node_disconnected_exception",
        "primary_missing_action_exception",
        "process_cluster_event_timeout_exception",
        "rejected_execution_exception",
        "search_phase_execution_exception",
        "unavailable_shards_exception",
    }
)


def _host(address: str) -> dict[str, Any]:
    parts = urlsplit(address)
    return {
        "host": parts.hostname,
        "port": parts.port or _DEFAULT_PORTS[parts.scheme],
        "scheme": parts.scheme,
        "use_ssl": parts.scheme == "https",
        "url_prefix": parts.path.strip("/"),
    }


def said(info: object) -> str:
    """What an answer gives as its reason, in short."""
    reason: object = info
    while isinstance(reason, Mapping):
        causes = reason.get("root_cause")
        inner = reason.get("error", reason.get("reason"))
        if inner is None and isinstance(causes, Sequence) and causes:
            inner = causes[0]
        reason = inner if inner is not None else ""
    return " ".join(str(reason).split())[:_MOST_SAID]


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:_MOST_SAID] or type(error).__name__


def too_new(place: str) -> StoreTooNew:
    return StoreTooNew(f"the index in OpenSearch at {place} was written by a newer Levada: update Levada here too")
