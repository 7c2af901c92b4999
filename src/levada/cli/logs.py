"""Log lines, for people or as JSON."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from levada.core.durations import iso
from levada.core.records import VisitResult
from levada.core.words import harmless

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
    """Log warnings as text, or, as JSON, also regular events such as each visit."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Objects() if kind is LogKind.JSON else _Lines())
    logger = logging.getLogger("levada")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO if kind is LogKind.JSON else logging.WARNING)


def for_machines() -> bool:
    """Whether logs are JSON: then standard error holds nothing else, no bar and no text."""
    return any(isinstance(handler.formatter, _Objects) for handler in logging.getLogger("levada").handlers)


def tell(message: str, level: int = logging.ERROR) -> None:
    """Print one line on standard error, as text or as a JSON log line."""
    if for_machines():
        logging.getLogger("levada").log(level, "%s", message)
    elif level < logging.WARNING:
        print(harmless(message), file=sys.stderr)
    else:
        print(f"levada: {harmless(message)}", file=sys.stderr)


def tell_partial(away: Sequence[str], missing: str) -> None:
    """Say which shards do not answer, and what of the answer is missing therefore."""
    for sentence in away:
        tell(f"{sentence}; {missing}", logging.WARNING)


def log_visits(result: Sequence[VisitResult]) -> None:
    """Log each visit, if logs are JSON."""
    if not visits.isEnabledFor(logging.INFO):
        return
    for each in result:
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
