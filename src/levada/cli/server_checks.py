"""Do the servers of the settings let us in?"""

from __future__ import annotations

from collections.abc import Iterator

from levada.cli.checks import Check, failed, fine
from levada.errors import LevadaError
from levada.flow.settings import Settings

__all__ = ["server_checks"]

_LEAST = 12  # the oldest PostgreSQL that has what the store asks for
_PLACE = "PostgreSQL"


def server_checks(settings: Settings) -> Iterator[Check]:
    """Those that hold a collection are also read by `folder_checks`; here a new one would begin."""
    for dsn in settings.store.servers:
        yield _reached(dsn)


def _reached(dsn: str) -> Check:
    from levada.adapters.postgresql.connecting import Address

    try:
        address = Address(dsn, "levada")
        with address.connect() as connection:
            number = connection.info.server_version // 10_000
    except LevadaError as error:
        return failed(_PLACE, str(error), "see store.servers in the settings")
    found = f"{number} {address.place.removeprefix('PostgreSQL ').partition(' (schema ')[0]}"
    return fine(_PLACE, found) if number >= _LEAST else failed(_PLACE, found, f"{_LEAST} or newer is needed")
