"""Errors: each says what is wrong and what to do.

```
LevadaError                 exit 1: the work could not be done
├── Refused                 exit 3: not allowed, or nothing there
│   ├── NotFound            no such page, version or result
│   ├── AddressRefused      the address guard refused the address
│   └── TooMany             more than can be accepted now
├── UsageError              exit 2: the command line, or a file named there, is wrong
│   ├── SettingsError       a wrong key or value in levada.toml
│   ├── PluginError         a plug-in that is not there, or cannot be used
│   ├── BadUrl              not an http or https address
│   ├── BadQuery            a query that cannot be parsed; says where
│   └── MissingExtra        a package that this command needs is not installed
├── StoreError              the data folder
│   ├── StoreAway           its server cannot be reached, or does not answer in time
│   ├── StoreLocked         another process has it open
│   ├── StoreAway           a server that holds pages does not answer; the others go on
│   ├── StoreFull           the disk is full; nothing of this batch was written
│   ├── BodiesAway          the place of the bodies cannot be reached now; nothing of this batch was written
│   ├── StoreDamaged        the database or index is not readable
│   │   └── IndexOutdated   the index was written by an older Levada: to be rebuilt
│   ├── IndexAway           the search engine cannot be reached, or does not answer
│   ├── StoreOutdated       written by an older Levada: to be upgraded first
│   └── StoreTooNew         written by a newer Levada
├── BrokerError             the message broker refused
│   └── BrokerAway          it cannot be reached or does not confirm: unconfirmed messages were not sent
├── NotTold                 a notification's target could not be reached, or did not take the message
└── ParserDied              a page killed the parser child
```

The adapter that meets an error translates it, the command line shows it as one line, and nothing in between
swallows it. The API's error code is the class name.

>>> issubclass(levada.errors.StoreFull, levada.StoreError)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class LevadaError(Exception):
    """The base of every error that Levada reports; its text is for the user.

    >>> try:
    ...     news.page("https://nowhere.example/")
    ... except levada.LevadaError as error:
    ...     print(error.exit_code)
    3
    """

    exit_code: ClassVar[int] = 1


class Refused(LevadaError):
    """Not allowed, or nothing to do.

    >>> receipt = news.pause()
    >>> news.check(start)
    Traceback (most recent call last):
    levada.core.errors.Refused: the crawl in news is paused: resume it first
    """

    exit_code = 3


class NotFound(Refused):
    """No such page, version, site or collection.

    >>> levada.open("nothing-here", create=False)
    Traceback (most recent call last):
    levada.core.errors.NotFound: there is no collection in nothing-here: start one with 'levada crawl URL'
    """


class AddressRefused(Refused):
    pass


class TooMany(Refused):
    """Too many requests at the same time.

    >>> issubclass(levada.TooMany, levada.Refused)
    True
    """


class UsageError(LevadaError):
    """A wrong call, option or value; the message says what to write instead.

    >>> news.close()
    >>> news.stats()
    Traceback (most recent call last):
    levada.core.errors.UsageError: the collection in news is closed: open it again with levada.open()
    """

    exit_code = 2


class SettingsError(UsageError):
    """A wrong key or value in the settings.

    >>> levada.Settings().replace({"budget.per_hours": 100})
    Traceback (most recent call last):
    levada.core.errors.SettingsError: settings, [budget]: unknown key 'per_hours'; did you mean 'per_hour'?
    """


class PluginError(UsageError):
    pass


class BadUrl(UsageError):
    """Not an http or https address.

    >>> try:
    ...     news.add("ftp://example.org/")
    ... except levada.BadUrl as error:
    ...     print(error)
    'ftp://example.org/' is not an http or https address: write it like https://example.org
    """


class BadQuery(UsageError):
    """A search that cannot be understood; says where.

    >>> try:
    ...     news.search('"ferry')
    ... except levada.BadQuery as error:
    ...     print("quote" in str(error))
    True
    """


class MissingExtra(UsageError):
    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'levada[{extra}]'")


class StoreError(LevadaError):
    """The data folder cannot be read or written.

    >>> issubclass(levada.StoreLocked, levada.StoreError)
    True
    """


class StoreLocked(StoreError):
    """Another crawl, in this process or another one, writes to the folder.

    >>> count = news.add(other)
    >>> events = news.events()
    >>> event = next(events)
    >>> try:
    ...     news.settings = news.settings
    ... except levada.StoreLocked as error:
    ...     print(str(error).partition(" (")[0])
    news is in use by another crawl
    >>> events.close()
    """


class StoreAway(StoreError):
    """A server that holds pages cannot be reached, or does not answer; nothing is lost.

    With `in_doubt`, it went away while it committed: the batch is written as a whole, or not at all.

    >>> issubclass(levada.errors.StoreAway, levada.StoreError)
    True
    """

    in_doubt = False


class StoreFull(StoreError):
    pass


class BodiesAway(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class IndexOutdated(StoreDamaged):
    pass


class IndexAway(StoreError):
    """The search engine cannot be reached or does not answer. Nothing is lost: the change log waits."""


class StoreOutdated(StoreError):
    pass


class StoreTooNew(StoreError):
    pass


class BrokerError(LevadaError):
    pass


class BrokerAway(BrokerError):
    """The broker is away. `unconfirmed`: the places in the batch of the messages to send again."""

    def __init__(self, message: str, unconfirmed: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.unconfirmed = tuple(unconfirmed)


class NotTold(LevadaError):
    """A notification's target did not take the message; says why, without the target's secrets."""


class ParserDied(LevadaError):
    """A page killed the parser child. `cause` is the reason to record (`levada.core.reasons`)."""

    def __init__(self, message: str, cause: str = "parser-died") -> None:
        super().__init__(message)
        self.cause = cause
