"""Where does the bundled web mean no good? Its hostile corner: one start page, and one host per case.

No case can hide another: a host that a crawler gives up on holds nothing else, and a slow one slows nobody.
"""

from __future__ import annotations

from levada.demo import traps
from levada.demo.cases import HOSTILE_CASES, HOSTILE_HOST, HostileCase
from levada.demo.wire import Answer, Asked, Stream
from levada.reasons import Reason

__all__ = ["HOSTILE_CASES", "HOSTILE_HOST", "HostileCase", "answer_hostile", "is_hostile", "start_urls"]

_OPEN_ROBOTS = Answer(200, b"User-agent: *\nDisallow: /closed/\n", (("Content-Type", "text/plain"),))
_BY_HOST = {case.host: case for case in HOSTILE_CASES}


def is_hostile(host: str) -> bool:
    return host == HOSTILE_HOST or host in _BY_HOST


def start_urls(port: int | None = None) -> list[str]:
    """The start page, and the front pages of the hosts that it links to: a crawl keeps to the sites it is given.

    It leaves them only where a start address redirects; so those that lead to a private address are among them.
    """
    suffix = f":{port}" if port else ""
    fronts = [f"http://{host}{suffix}/" for host in (HOSTILE_HOST, *_BY_HOST)]
    return fronts + [case.url(port) for case in HOSTILE_CASES if case.reasons == {Reason.ADDRESS}]


def answer_hostile(asked: Asked) -> Answer | Stream:
    case = _BY_HOST.get(asked.host)
    if asked.path == "/robots.txt":
        return _OPEN_ROBOTS if case is None or case.robots is None else case.robots(asked)
    if asked.path == "/":
        return _front(case, asked)
    within = case is not None and asked.path.startswith(f"/{case.path.split('/')[1]}")
    return case.serve(asked) if case is not None and within else traps.missing()


def _front(case: HostileCase | None, asked: Asked) -> Answer:
    """What a host says of itself, with a link to its case; the start page links to all."""
    if case is not None:
        return traps.page(f"Host {case.name}", f'<p>Its case: <a href="{case.path}">{case.name}</a>.</p>')
    links = "".join(f'<li><a href="http://{host}{asked.port}/">{c.name}</a></li>' for host, c in _BY_HOST.items())
    return traps.page("The hostile corner", f"<p>Every link leads to trouble.</p><ul>{links}</ul>")
