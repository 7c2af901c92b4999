"""A web application with a login: Flask, its sessions and a token in the form, over TLS on loopback.

A session ends after some requests. What a visitor then gets in place of a page is the login form, by a redirect or at
once with status 200.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flask import Flask, abort, redirect, request, session
from werkzeug.serving import make_server

__all__ = ["FORM", "MemberSite", "member_site"]

FORM = "Members only, please say who you are"
"""Stands on the login form, and nowhere else."""

_SUBJECTS = ("levadas", "channels", "water", "walks", "bridges", "tunnels", "villages", "terraces", "vines", "mist")


@dataclass
class MemberSite:
    """What the application knows of its visitors."""

    user: str
    password: str
    pages: int
    lasts: int  # requests
    in_place: bool  # the form answers 200 where a page was asked for
    port: int = 0
    logins: int = 0
    wrong: int = 0
    forms: int = 0  # shown
    ended: int = 0  # sessions that did not last
    seen: dict[str, int] = field(default_factory=dict)  # requests of each session
    cookies: list[str] = field(default_factory=list)  # all that were ever set
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


def _application(site: MemberSite) -> Flask:
    app = Flask("member_site")
    app.secret_key = secrets.token_bytes(32)
    app.config.update(SESSION_COOKIE_SECURE=True, SESSION_COOKIE_SAMESITE="Lax")

    def form(message: str = "") -> str:
        site.forms += 1
        back = "/" if request.path == "/login" else request.path
        session["token"] = secrets.token_hex(8)
        return (
            f"<!doctype html><title>Log in</title><main><h1>{FORM}</h1><p>{message}</p>"
            f'<form method="post" action="/login?next={back}"><input type="hidden" name="csrf_token" '
            f'value="{session["token"]}"><input name="username"><input type="password" name="password">'
            '<input type="checkbox" name="remember" checked><button name="go" value="1">Log in</button></form></main>'
        )

    def member() -> bool:
        with site.lock:
            key = session.get("key", "")
            if key not in site.seen:
                return False
            site.seen[key] += 1
            if site.seen[key] > site.lasts:
                del site.seen[key]
                site.ended += 1
                session.clear()
                return False
            return True

    def page(title: str, text: str) -> Any:
        if not member():
            return form() if site.in_place else redirect(f"/login?next={request.path}")
        links = " ".join(f'<a href="/page/{number}">page {number}</a>' for number in range(site.pages))
        menu = '<a class="log-out" href="/logout">Log out</a> <a href="/login">Another user</a> <a href="/vault">V</a>'
        return (
            f"<!doctype html><title>{title}</title><nav>{menu}</nav><main><h1>{title}</h1><p>{text}</p>{links}</main>"
        )

    @app.get("/robots.txt")
    def robots() -> Any:
        return "User-agent: *\nAllow: /\n", {"Content-Type": "text/plain"}

    @app.get("/")
    def front() -> Any:
        return page("The members' front page", "All that members write about the path beside a levada.")

    @app.get("/page/<int:number>")
    def one(number: int) -> Any:
        if number >= site.pages:
            abort(404)
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        return page(f"Page {number}", f"The {number}th text about {subject}, {'and ' * number} its {subject}.")

    @app.get("/vault")
    def vault() -> Any:
        return redirect("/login?next=/vault")  # not for this member

    @app.get("/logout")
    def logout() -> Any:
        session.clear()
        return redirect("/login")

    @app.get("/login")
    def ask() -> Any:
        return form()

    @app.post("/login")
    def log_in() -> Any:
        token = session.pop("token", None)
        if not token or request.form.get("csrf_token") != token or request.form.get("remember") != "on":
            abort(400)
        if (request.form.get("username"), request.form.get("password")) != (site.user, site.password):
            site.wrong += 1
            return form("That is not right.")
        with site.lock:
            site.logins += 1
            session["key"] = secrets.token_hex(8)
            site.seen[session["key"]] = 0
        return redirect(request.args.get("next") or "/")

    inner: Any = app.wsgi_app

    def noting(environ: Any, start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            told = [value for name, value in headers if name.lower() == "set-cookie"]
            site.cookies += [line.partition("=")[2].partition(";")[0] for line in told]
            return start_response(status, headers, *rest)

        return inner(environ, start)

    app.wsgi_app = noting  # type: ignore[method-assign]
    return app


@contextmanager
def member_site(
    certificate: Path, *, password: str, pages: int = 60, lasts: int = 20, in_place: bool = False
) -> Iterator[MemberSite]:
    """The application while it runs; `certificate` is a file with its key and certificate."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    site = MemberSite("ada", password, pages, lasts, in_place)
    files = (str(certificate), str(certificate))
    server = make_server("127.0.0.1", 0, _application(site), threaded=True, ssl_context=files)
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join(10.0)
        server.server_close()
