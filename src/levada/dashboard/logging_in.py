"""How does a person with a browser show the token? By a page that holds nothing else."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from levada.dashboard.access import LOGIN_PATH, LOGOUT_PATH, SESSION_COOKIE, SESSION_SECONDS, Access, Refusal

__all__ = ["login_page", "login_routes"]

_STYLE = (
    "body{font:16px system-ui;display:grid;place-items:center;min-height:90vh;margin:0;background:#f6f8f7;"
    "color:#17211d}form{display:grid;gap:12px;width:min(20rem,90vw)}input,button{font:inherit;padding:.6rem;"
    "border-radius:8px;border:1px solid #8aa}button{background:#0b6e4f;color:#fff;border:0}"
    "@media(prefers-color-scheme:dark){body{background:#101614;color:#e6efe9}input{background:#17211d;color:inherit}}"
)
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Levada</title><style>{style}</style>
<form method="post" action="{path}"><h1>Levada</h1><p role="alert">{words}</p>
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" autofocus>
<button>Open</button></form></html>"""
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # by the policy of the other pages the form would be sent with `Origin: null`
}
_MOST_FIELDS = 4
_TOO_MANY_FIELDS = Refusal(400, "usage-error", f"a form of at most {_MOST_FIELDS} fields is read here")


def login_page(refused: Refusal) -> Response:
    words = "this server needs a token" if refused.code == "token-needed" else refused.message
    page = _PAGE.format(style=_STYLE, path=LOGIN_PATH, words=f"{words[0].upper()}{words[1:]}.")
    return HTMLResponse(page, refused.status, _HEADERS)


def _token_in(body: bytes) -> str | Refusal:
    try:
        form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        return _TOO_MANY_FIELDS
    return form.get("token", [""])[0]


def login_routes(access: Access) -> list[Route]:
    async def log_in(request: Request) -> Response:
        token = _token_in(await request.body())
        client = request.client.host if request.client else ""
        session = token if isinstance(token, Refusal) else access.log_in(token, client)
        if isinstance(session, Refusal):
            return login_page(session)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(SESSION_COOKIE, session, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict")
        return answer

    async def log_out(request: Request) -> Response:
        access.log_out(request.headers)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(SESSION_COOKIE)
        return answer

    return [Route(LOGIN_PATH, log_in, methods=["POST"]), Route(LOGOUT_PATH, log_out, methods=["POST"])]
