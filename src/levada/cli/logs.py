"""How does the program tell its operator what happens? Lines for a person, or one object per line for a machine."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from levada.records import Settled
from levada.telling.duration import iso
from levada.telling.words import harmless

__all__ = ["LogKind", "for_machines", "log_visits", "set_up_logs", "tell"]

visits = logging.getLogger("levada.visits")


class LogKind(StrEnum):
    TEXT = "text"
    JSON = "json"


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"levada: {harmless(super().format(record))}"


class _Objects(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": iso(record.created),
            "level": record.levelname.lower(),
            "part": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told).decode()


def set_up_logs(kind: LogKind) -> None:
    """Warnings for a person; for a machine also what happens in the ordinary course, each visit for one."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Objects() if kind is LogKind.JSON else _Lines())
    logger = logging.getLogger("levada")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO if kind is LogKind.JSON else logging.WARNING)


def for_machines() -> bool:
    """Then standard error holds objects and nothing else: no bar, no lines for a person."""
    return any(isinstance(handler.formatter, _Objects) for handler in logging.getLogger("levada").handlers)


def tell(message: str, level: int = logging.ERROR) -> None:
    """The user, of something that must be known: one line on standard error, in the form that was asked for."""
    if for_machines():
        logging.getLogger("levada").log(level, "%s", message)
    elif level < logging.WARNING:
        print(harmless(message), file=sys.stderr)
    else:
        print(f"levada: {harmless(message)}", file=sys.stderr)


def log_visits(settled: Sequence[Settled]) -> None:
    """Nothing, unless somebody reads it."""
    if not visits.isEnabledFor(logging.INFO):
        return
    for each in settled:
        facts = {
            "url": each.lease.page.url,
            "site": each.lease.page.site,
            "outcome": each.visit.outcome.name.lower(),
            "reason": each.reason,
            "state": each.state,
            "visited_at": iso(each.visit.at),
            "next_visit": iso(each.next_visit),
        }
        visits.info("visit", extra={"facts": facts})
