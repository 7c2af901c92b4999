"""The login page, and logging in by password, by token and by OpenID Connect, and out."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from hashlib import sha256
from html import escape
from importlib.resources import files
from urllib.parse import parse_qs, quote

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from levada.accounts.accounts import SESSION_SECONDS
from levada.accounts.openid import ATTEMPT_SECONDS, OpenIdError, OpenIdLogin
from levada.core.errors import LevadaError
from levada.serve.access import (
    CALLBACK_PATH,
    LOGIN_PATH,
    LOGOUT_PATH,
    OPENID_PATH,
    SESSION_COOKIE,
    Access,
    AccessRefusal,
)

_ATTEMPT_COOKIE = "levada_login"
_PAGE = (files(__package__) / "login.html").read_text(encoding="utf-8")
_STYLE = _PAGE.partition("<style>")[2].partition("</style>")[0]
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # by the policy of the other pages the form would be sent with `Origin: null`
}
_MOST_FIELDS = 4
_PASSWORDS_AT_ONCE = 2
_TOO_MANY_FIELDS = AccessRefusal(400, "usage-error", f"a form of at most {_MOST_FIELDS} fields is read here")
_NEXT = '<input type="hidden" name="next" value="{next}">'
_BY_PASSWORD = (
    f'<form method="post" action="{LOGIN_PATH}">{_NEXT}<label for="name">Name</label>'
    '<input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus>'
    '<label for="password">Password</label><input id="password" name="password" type="password" '
    'autocomplete="current-password" required><button>Log in</button></form>'
)
_BY_TOKEN = (
    f'<form method="post" action="{LOGIN_PATH}">{_NEXT}<label for="token">Token</label>'
    '<input id="token" name="token" type="password" autocomplete="current-password" required{focus}>'
    "<button>Open</button></form>"
)
_BY_OPENID = f'<a class="button" href="{OPENID_PATH}?next={{next}}">Log in with {{provider}}</a>'
_ONWARD = '<meta http-equiv="refresh" content="0;url={next}"><a class="button" href="{next}">Continue</a>'


class Login:
    """The ways in that this server has. `provider` is what people call the OpenID provider."""

    def __init__(self, access: Access, openid: OpenIdLogin | None = None, provider: str = "") -> None:
        self._access = access
        self._openid = openid
        self._provider = provider
        self._checking: CapacityLimiter | None = None

    def page(self, refused: AccessRefusal, path: str = "/") -> Response:
        """The login page, which says why it is shown; it leads back to the path."""
        accounts = self._access.accounts
        try:
            has_users = accounts is not None and accounts.has_users
        except LevadaError:
            has_users = False
        tokens = bool(self._access.tokens)
        then = escape(_local(path), quote=True)
        forms = []
        if has_users:
            forms.append(_BY_PASSWORD.format(next=then))
        if self._openid is not None:
            forms.append(_BY_OPENID.format(next=quote(_local(path)), provider=escape(self._provider)))
        if tokens and forms:
            by_token = _BY_TOKEN.format(next=then, focus="")
            forms.append(f"<details><summary>Use a token instead</summary>{by_token}</details>")
        elif tokens:
            forms.append(_BY_TOKEN.format(next=then, focus=" autofocus"))
        words = refused.message
        if refused.code == "token-needed":
            words = "log in to go on" if forms and not (tokens and len(forms) == 1) else "this server needs a token"
        return _filled(words, "".join(forms), refused.status)

    def routes(self) -> list[Route]:
        routes = [
            Route(LOGIN_PATH, self._log_in, methods=["POST"]),
            Route(LOGOUT_PATH, self._log_out, methods=["POST"]),
        ]
        if self._openid is not None:
            routes += [Route(OPENID_PATH, self._leave), Route(CALLBACK_PATH, self._come_back)]
        return routes

    async def _log_in(self, request: Request) -> Response:
        try:
            form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
        except ValueError:
            return self.page(_TOO_MANY_FIELDS)
        name, password, token, then = (form.get(key, [""])[0] for key in ("name", "password", "token", "next"))
        client = _client(request)
        if name or password:
            check = partial(self._access.log_in_user, name, password, client)
            session = await to_thread.run_sync(check, limiter=self._hashing())
        else:
            session = self._access.log_in(token, client)
        if isinstance(session, AccessRefusal):
            return self.page(session, then)
        return _with_session(request, RedirectResponse(_local(then), 303), session)

    def _hashing(self) -> CapacityLimiter:
        """Few passwords are checked at once, and those that wait hold no thread that others need."""
        if self._checking is None:
            self._checking = CapacityLimiter(_PASSWORDS_AT_ONCE)
        return self._checking

    async def _log_out(self, request: Request) -> Response:
        await run_in_threadpool(self._access.log_out, request.headers, _client(request))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(SESSION_COOKIE)
        return answer

    async def _leave(self, request: Request) -> Response:
        assert self._openid is not None
        try:
            address, browser = await self._openid.begin(
                _callback(request), _local(request.query_params.get("next", ""))
            )
        except OpenIdError as error:
            return self.page(AccessRefusal(502, "openid", str(error)))
        answer = RedirectResponse(address, 303, headers={"cache-control": "no-store"})
        answer.set_cookie(
            _ATTEMPT_COOKIE,
            browser,
            max_age=int(ATTEMPT_SECONDS),
            path=OPENID_PATH,
            httponly=True,
            secure=_is_secure(request),
            samesite="lax",  # the provider's page leads back here
        )
        return answer

    async def _come_back(self, request: Request) -> Response:
        assert self._openid is not None
        try:
            cookie = request.cookies.get(_ATTEMPT_COOKIE, "")
            found = await self._openid.finish(dict(request.query_params), cookie, _callback(request))
        except OpenIdError as error:
            return self.page(AccessRefusal(403, "openid", str(error)))
        session = await run_in_threadpool(self._access.log_in_identity, found.identities, _client(request))
        if session is None:
            name = found.identities[0]
            why = f"nobody here has the identity {name[:200]}: an administrator adds it by 'levada users add --openid'"
            return self.page(AccessRefusal(403, "openid", why))
        # A page of our own leads on: a redirect would still count as the provider's, and go without the cookie.
        onward = _filled("you are logged in", _ONWARD.format(next=escape(found.then, quote=True)), 200)
        onward.delete_cookie(_ATTEMPT_COOKIE, path=OPENID_PATH)
        return _with_session(request, onward, session)


def _filled(words: str, forms: str, status: int) -> Response:
    shown = f"{words[0].upper()}{words[1:]}."
    return HTMLResponse(_PAGE.replace("{words}", escape(shown)).replace("{forms}", forms), status, _HEADERS)


def _with_session(request: Request, answer: Response, session: str) -> Response:
    answer.set_cookie(
        SESSION_COOKIE,
        session,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        secure=_is_secure(request),
        samesite="strict",
    )
    return answer


def _is_secure(request: Request) -> bool:
    """Whether the browser speaks TLS. Behind a proxy that we do not know of, its own `Origin` header tells."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _local(path: str) -> str:
    """A path of this server; anything that would lead elsewhere is the start page."""
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_local and not path.startswith((LOGIN_PATH, LOGOUT_PATH)) else "/"


def _callback(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}{CALLBACK_PATH}"


def _client(request: Request) -> str:
    return request.client.host if request.client else ""
