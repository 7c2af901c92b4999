"""One finding of the doctor."""

from __future__ import annotations

from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True):
    name: str
    verdict: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def fine(name: str, found: str, advice: str = "") -> Check:
    return Check(name, "ok", found, advice)


def worrying(name: str, found: str, advice: str) -> Check:
    return Check(name, "warn", found, advice)


def failed(name: str, found: str, advice: str) -> Check:
    return Check(name, "fail", found, advice)
