"""What can go wrong, as facts that say what to do.

```
LevadaError                 exit 1: the work could not be done
├── Refused                 exit 3: asked for, but not allowed, or nothing there
│   ├── NotFound            no such page, version or result
│   ├── AddressRefused      the address guard said no
│   └── TooMany             more is asked for than can be taken now
├── UsageError              exit 2: the command line or a file given on it is wrong
│   ├── SettingsError       a wrong key or value in levada.toml
│   ├── BadUrl              not an http or https address
│   ├── BadQuery            a search that cannot be understood; says where
│   └── MissingExtra        a package that this command needs is not installed
├── StoreError              the data folder
│   ├── StoreLocked         another process holds it
│   ├── StoreFull           the disk is full: nothing of this batch was written
│   ├── StoreDamaged        the database or index is not readable
│   └── StoreTooNew         written by a newer Levada
├── BrokerError             a broker of messages refused
│   └── BrokerAway          it cannot be reached, or does not confirm: what it did not confirm was not sent
└── ParserDied              a page killed the parser child
```

An error is translated where it is met (the adapter), shown as one line (the command line), and never
swallowed in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "AddressRefused",
    "BadQuery",
    "BadUrl",
    "BrokerAway",
    "BrokerError",
    "LevadaError",
    "MissingExtra",
    "NotFound",
    "ParserDied",
    "Refused",
    "SettingsError",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreTooNew",
    "TooMany",
    "UsageError",
]


class LevadaError(Exception):
    """Anything that Levada itself reports; its text is written for the user."""

    exit_code: ClassVar[int] = 1


class Refused(LevadaError):
    exit_code = 3


class NotFound(Refused):
    pass


class AddressRefused(Refused):
    pass


class TooMany(Refused):
    pass


class UsageError(LevadaError):
    exit_code = 2


class SettingsError(UsageError):
    pass


class BadUrl(UsageError):
    pass


class BadQuery(UsageError):
    pass


class MissingExtra(UsageError):
    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'levada[{extra}]'")


class StoreError(LevadaError):
    pass


class StoreLocked(StoreError):
    pass


class StoreFull(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class StoreTooNew(StoreError):
    pass


class BrokerError(LevadaError):
    pass


class BrokerAway(BrokerError):
    """`unconfirmed` are the places in the batch of what may not have arrived, to be sent again."""

    def __init__(self, message: str, unconfirmed: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.unconfirmed = tuple(unconfirmed)


class ParserDied(LevadaError):
    """`cause` is the word that is recorded (see `levada.reasons`)."""

    def __init__(self, message: str, cause: str = "parser-died") -> None:
        super().__init__(message)
        self.cause = cause
