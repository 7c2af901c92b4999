"""The table of rights: what each operation and each page of the server needs.

What is not listed needs the right of an administrator, so that an operation that was forgotten here is closed.
"""

from __future__ import annotations

from levada.accounts.records import Right

_OPEN, _SEARCH, _READ, _METRICS, _CONTROL, _ADMIN = Right

NEEDS: dict[str, Right] = {
    "GET /api/v1/health": _OPEN,
    "GET /api/v1/me": _READ,
    "GET /api/v1/openapi.json": _READ,
    # Search, and what a search box needs
    "GET /api/v1/search": _SEARCH,
    "GET /api/v1/suggest": _SEARCH,
    "GET /opensearch.xml": _SEARCH,
    # The collection
    "GET /api/v1/collections": _READ,
    "GET /api/v1/page": _READ,
    "GET /api/v1/page/text": _READ,
    "GET /api/v1/page/markdown": _READ,
    "GET /api/v1/page/data": _READ,
    "GET /api/v1/page/screenshot": _READ,
    "GET /api/v1/page/versions": _READ,
    "GET /api/v1/page/diff": _READ,
    "GET /api/v1/why": _READ,
    "GET /api/v1/sites": _READ,
    "GET /api/v1/site": _READ,
    "GET /api/v1/site/rules": _READ,
    "GET /api/v1/rules": _READ,  # secrets are masked
    "GET /api/v1/status": _READ,
    "GET /api/v1/stages": _READ,
    "GET /api/v1/balance": _READ,
    "GET /api/v1/trends": _READ,
    "GET /api/v1/live/stream": _READ,
    "GET /api/v1/shards": _READ,
    "GET /api/v1/loads": _READ,
    "GET /api/v1/changes": _READ,
    "GET /api/v1/changes/latest": _READ,
    "GET /api/v1/changes/digests": _READ,
    "GET /api/v1/changes/stream": _READ,
    "GET /api/v1/changes.atom": _READ,
    "GET /api/v1/budget": _READ,
    "GET /api/v1/lab": _READ,
    "GET /api/v1/settings": _READ,  # secrets are masked
    # Its crawl
    "POST /api/v1/seeds": _CONTROL,
    "DELETE /api/v1/sites": _CONTROL,
    "POST /api/v1/check": _CONTROL,
    "POST /api/v1/rules/try": _CONTROL,
    "PUT /api/v1/rules": _CONTROL,  # but not the keys that read or trust something of the machine
    "DELETE /api/v1/rules": _CONTROL,
    "POST /api/v1/page/try": _CONTROL,
    "POST /api/v1/pause": _CONTROL,
    "POST /api/v1/resume": _CONTROL,
    "PUT /api/v1/budget": _CONTROL,
    "POST /api/v1/lab": _CONTROL,
    # Who is told of changes; targets are shown without their secrets
    "GET /api/v1/notifications": _READ,
    "GET /api/v1/notifications/log": _READ,
    "POST /api/v1/notifications": _CONTROL,
    "DELETE /api/v1/notifications": _CONTROL,
    "POST /api/v1/notifications/test": _CONTROL,
    "PUT /api/v1/notifications": _CONTROL,
    "POST /api/v1/notifications/pause": _CONTROL,
    "POST /api/v1/notifications/resume": _CONTROL,
    # The addresses of webhooks may hold secrets
    "GET /api/v1/webhooks": _ADMIN,
    "POST /api/v1/webhooks": _ADMIN,
    "DELETE /api/v1/webhooks": _ADMIN,
    # How it works, and what cannot be undone
    "PUT /api/v1/settings": _ADMIN,
    "POST /api/v1/forget": _ADMIN,
    # People
    "GET /api/v1/users": _ADMIN,
    "POST /api/v1/users": _ADMIN,
    "PUT /api/v1/users": _ADMIN,
    "DELETE /api/v1/users": _ADMIN,
    "GET /api/v1/keys": _ADMIN,
    "POST /api/v1/keys": _ADMIN,
    "DELETE /api/v1/keys": _ADMIN,
    "GET /api/v1/audit": _ADMIN,
    # Pages
    "GET /": _READ,
    "GET /search": _READ,
    "GET /static/{name}": _READ,
    "GET /metrics": _METRICS,
    "GET /embed/search.js": _OPEN,
    "POST /login": _OPEN,
    "POST /logout": _OPEN,
    "GET /login/openid": _OPEN,
    "GET /login/openid/callback": _OPEN,
}

OF_THE_SERVER = frozenset({"/api/v1/users", "/api/v1/keys", "/api/v1/audit"})
"""What concerns every collection: closed to those who are limited to some."""

_STATIC = "/static/"


def right_for(method: str, path: str) -> Right:
    """The right that this request needs; `path` is without the prefix of a collection."""
    method = "GET" if method in ("HEAD", "OPTIONS") else method
    if path.startswith(_STATIC):
        path = f"{_STATIC}{{name}}"
    return NEEDS.get(f"{method} {path}", Right.ADMIN)
