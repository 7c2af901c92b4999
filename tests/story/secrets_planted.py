"""A secret is looked for in everything that a collection says and keeps."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import levada
from levada.store.sqlite import SqliteStore
from tests.serve.served import served

__all__ = ["leaks", "run"]

_SAYING = (
    "settings",
    "settings --json",
    "doctor --json",
    "changes --json",
    "search levada --json",
    "sites --json",
    "export --jsonl --out pages.jsonl",
    "export --markdown --out pages.md",
    "export --xml pages",
    "export --warc --out pages.warc.gz",
    "backup saved.backup",
)


def run(cwd: Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`levada` with these words."""
    command = [sys.executable, "-m", "levada", *words]
    return subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=90,
        env={**os.environ, **(env or {})},
    )


def leaks(cwd: Path, secrets: Mapping[str, str], said: str = "", *, jars: str = "cookies") -> list[str]:
    """Where one of the secrets (by a name for it) stands, in any usual spelling; `cwd` holds the collection."""
    needles = {spelling: name for name, secret in secrets.items() for spelling in _spellings(secret)}
    found = []
    for place, content in _everything(cwd, said, jars):
        found += [f"{name} in {place}" for spelling, name in needles.items() if spelling in content]
    return found


def _spellings(secret: str) -> Iterator[bytes]:
    plain = secret.encode()
    yield plain
    yield quote(secret).encode()
    for shift in range(3):  # what base64 makes of it, wherever it begins
        yield b64encode(b"x" * shift + plain)[4 if shift else 0 : -4]


def _answers(cwd: Path) -> Iterator[tuple[str, bytes]]:
    """What the server says to every question, and to a trial, which asks the site itself with the secret."""
    data = cwd / "levada-data"
    with levada.open(data) as collection:
        sites = [report.site for report in collection.site_reports()]
        urls = [row.url for row in collection.rows()]
    with served(data) as address:
        described = json.loads(_body(f"{address}/api/v1/openapi.json"))
        values = {"url": urls[0], "site": sites[0], "q": "levada"}
        for path, operations in described["paths"].items():
            if "get" not in operations or "text/event-stream" in str(operations["get"]["responses"]):
                continue
            asked = {each["name"]: values.get(each["name"]) for each in operations["get"].get("parameters", ())}
            given = urlencode({name: value for name, value in asked.items() if value})
            yield f"GET {path}", _body(f"{address}{path}?{given}")
        yield "GET /metrics", _body(f"{address}/metrics")
        for url in urls[:2]:
            order = json.dumps({"url": url, "select": ["h1"]}).encode()
            yield f"a trial of {url}", _body(f"{address}/api/v1/page/try", order)


def _body(address: str, order: bytes | None = None) -> bytes:
    request = Request(address, order, {"Content-Type": "application/json"} if order else {})
    try:
        with urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
    except HTTPError as refused:
        with refused:
            return bytes(refused.read())


def _everything(cwd: Path, said: str, jars: str) -> Iterator[tuple[str, bytes]]:
    yield "what was said", said.encode()
    for words in _SAYING:
        done = run(cwd, *words.split())
        assert done.returncode == 0 or words.startswith("search"), (words, done.stderr)  # it may find nothing
        yield f"levada {words}", (done.stdout + done.stderr).encode()
    data = cwd / "levada-data"
    yield from _answers(cwd)
    store = SqliteStore.open_reader(data / "levada.db")
    try:
        for document in store.scan():
            for version in store.versions(document.url):
                yield f"{document.url}, version {version.version}", repr(version).encode()
            yield document.url, repr(document).encode()
    finally:
        store.close()
    for file in sorted(each for each in cwd.rglob("*") if each.is_file()):
        if jars not in file.relative_to(cwd).parts:
            content = file.read_bytes()
            yield str(file.relative_to(cwd)), gzip.decompress(content) if file.suffix == ".gz" else content
