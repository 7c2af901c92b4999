"""Login by OpenID Connect: the authorization code flow with PKCE, state and nonce.

The provider is asked through a fetcher, and so through the address guard. The id_token is accepted only if a key of
the provider signed it, for this client, for this attempt, and lately. A state is good for one attempt of one browser.
"""

from __future__ import annotations

import secrets
from base64 import b64encode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from levada.core.errors import LevadaError, MissingExtra, UsageError
from levada.core.records import Request, Response

ATTEMPT_SECONDS = 600.0
_MOST_ATTEMPTS = 1_000
_METADATA_SECONDS = 3600.0
_KEYS_AGAIN = 60.0  # seconds between two looks for a key that is not known
_MOST_BYTES = 1 << 20
_LEEWAY = 60.0  # seconds that two clocks may differ
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_REQUIRED = ["iss", "sub", "aud", "exp", "iat", "nonce"]

Fetch = Callable[[Request], Awaitable[Response]]


class OpenIdError(LevadaError):
    """A login that the provider or we refuse; the message is for the person who tries."""


class Provider(msgspec.Struct, frozen=True):
    """Where people log in, and as which client we are known there."""

    issuer: str
    client: str
    secret: str = ""  # "" for a public client

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise UsageError(
                f"--openid takes the address of the provider such as https://id.example, not {self.issuer!r}"
            )
        if not self.client:
            raise UsageError("--openid needs --openid-client: the name under which the provider knows this server")


class LoggedIn(msgspec.Struct, frozen=True):
    """Who logged in at the provider, and where they wanted to go."""

    identities: tuple[str, ...]  # the verified mail address if there is one, and the subject
    then: str


class _Metadata(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Attempt(msgspec.Struct, frozen=True):
    browser: str
    nonce: str
    verifier: str
    redirect: str
    then: str
    expires: float


class OpenIdLogin:
    """The attempts to log in that are under way. They do not outlive the process."""

    def __init__(self, provider: Provider, fetch: Fetch, now: Callable[[], float]) -> None:
        _check_extra()
        self._provider = provider
        self._fetch = fetch
        self._now = now
        self._attempts: OrderedDict[str, _Attempt] = OrderedDict()
        self._metadata: tuple[float, _Metadata] | None = None
        self._keys: dict[str | None, Any] = {}
        self._keys_at = 0.0

    async def begin(self, redirect: str, then: str) -> tuple[str, str]:
        """The address at the provider to send the browser to, and the cookie that binds the attempt to it."""
        known = await self._known()
        state, verifier, browser = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = _Attempt(browser, secrets.token_urlsafe(32), verifier, redirect, then, self._now() + ATTEMPT_SECONDS)
        self._attempts[state] = attempt
        while len(self._attempts) > _MOST_ATTEMPTS:
            self._attempts.popitem(last=False)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._provider.client,
            "redirect_uri": redirect,
            "scope": "openid email",
            "state": state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        mark = "&" if "?" in known.authorization_endpoint else "?"
        return f"{known.authorization_endpoint}{mark}{urlencode(asked)}", browser

    async def finish(self, answer: Mapping[str, str], cookie: str, redirect: str) -> LoggedIn:
        """Who came back from the provider; `OpenIdError` says why nobody did."""
        attempt = self._attempts.pop(answer.get("state", ""), None)
        if attempt is None or attempt.expires <= self._now():
            raise OpenIdError("this login was not begun here, or took too long: begin again")
        if not compare_digest(attempt.browser.encode(), cookie.encode("utf-8", "replace")):
            raise OpenIdError("this login was begun in another browser: begin again")
        if attempt.redirect != redirect:
            raise OpenIdError(f"the provider sent you to {redirect}, and not to {attempt.redirect}: begin again")
        if error := answer.get("error"):
            why = answer.get("error_description", "")
            raise OpenIdError(f"the provider refused the login: {error[:100]}{f' ({why[:200]})' if why else ''}")
        if not answer.get("code"):
            raise OpenIdError("the provider sent no code: begin again")
        claims = await self._claims(await self._token(answer["code"], attempt), attempt)
        email = str(claims.get("email", "")) if claims.get("email_verified") is True else ""
        return LoggedIn(tuple(each for each in (email, str(claims["sub"])) if each), attempt.then)

    async def _token(self, code: str, attempt: _Attempt) -> str:
        known, provider = await self._known(), self._provider
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect,
            "client_id": provider.client,
            "code_verifier": attempt.verifier,
        }
        headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        if provider.secret and "client_secret_basic" in known.token_endpoint_auth_methods_supported:
            pair = f"{quote(provider.client, safe='')}:{quote(provider.secret, safe='')}"
            headers.append(("Authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        elif provider.secret:
            form["client_secret"] = provider.secret
        told = await self._ask(known.token_endpoint, tuple(headers), urlencode(form).encode())
        token = told.get("id_token") if isinstance(told, dict) else None
        if not isinstance(token, str):
            raise OpenIdError("the provider sent no id_token: ask its administrator whether OpenID Connect is on")
        return token

    async def _claims(self, token: str, attempt: _Attempt) -> dict[str, Any]:
        """The claims of an id_token that was made for us, now, for this attempt."""
        import jwt

        try:
            head = jwt.get_unverified_header(token)
            if head.get("alg") not in _ALGORITHMS:
                raise OpenIdError(f"the id_token is signed by {str(head.get('alg'))[:20]!r}, which is not accepted")
            key = await self._key(head.get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[head["alg"]],
                audience=self._provider.client,
                issuer=(await self._known()).issuer,
                leeway=_LEEWAY,
                options={"require": _REQUIRED},
            )
        except jwt.ExpiredSignatureError:
            raise OpenIdError("the id_token of the provider has expired: compare the clocks of both machines") from None
        except jwt.InvalidSignatureError:
            raise OpenIdError("the signature of the id_token is wrong: it does not come from the provider") from None
        except jwt.InvalidAudienceError:
            raise OpenIdError("the id_token was made for another client than this server") from None
        except jwt.InvalidIssuerError:
            raise OpenIdError("the id_token comes from another provider") from None
        except jwt.PyJWTError as error:
            raise OpenIdError(f"the id_token cannot be accepted: {error}") from None
        if not compare_digest(str(claims["nonce"]).encode(), attempt.nonce.encode()):
            raise OpenIdError("the id_token belongs to another login (its nonce differs): begin again")
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != self._provider.client:
            raise OpenIdError("the id_token was made for another client than this server")
        return claims

    async def _key(self, name: object) -> Any:
        """The provider's key of this name. One that is not known may be new: they are read again, but not often."""
        if name not in self._keys and (not self._keys or self._now() - self._keys_at >= _KEYS_AGAIN):
            import jwt

            told = await self._ask((await self._known()).jwks_uri)
            self._keys_at = self._now()
            try:
                found = jwt.PyJWKSet.from_dict(told).keys
            except (jwt.PyJWTError, TypeError, AttributeError) as error:
                raise OpenIdError(f"the keys of the provider cannot be read: {error}") from None
            self._keys = {key.key_id: key for key in found if key.key_type != "oct"}
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if name not in self._keys:
            raise OpenIdError("the id_token is signed by a key that the provider does not name")
        return self._keys[name]

    async def _known(self) -> _Metadata:
        """What the provider says about itself."""
        if self._metadata is None or self._metadata[0] <= self._now():
            issuer = self._provider.issuer.rstrip("/")
            told = await self._ask(f"{issuer}/.well-known/openid-configuration")
            try:
                known = msgspec.convert(told, _Metadata)
            except msgspec.ValidationError as error:
                raise OpenIdError(f"{issuer} is no OpenID provider: {error}") from None
            if known.issuer.rstrip("/") != issuer:
                raise OpenIdError(f"the provider calls itself {known.issuer[:200]}, not {issuer}: correct --openid")
            if issuer.startswith("https:") and any(
                not address.startswith("https:")
                for address in (known.authorization_endpoint, known.token_endpoint, known.jwks_uri)
            ):
                raise OpenIdError("the provider names an address without https")
            self._metadata = self._now() + _METADATA_SECONDS, known
        return self._metadata[1]

    async def _ask(self, url: str, headers: tuple[tuple[str, str], ...] = (), body: bytes | None = None) -> Any:
        answer = await self._fetch(Request(url, headers, _MOST_BYTES, body))
        where = urlsplit(url).netloc
        if answer.reason is not None:
            raise OpenIdError(f"the provider at {where} cannot be asked: {answer.detail or answer.reason}")
        try:
            told = msgspec.json.decode(answer.body)
        except msgspec.MsgspecError:
            told = None
        if answer.status != 200:
            why = str(told.get("error_description") or told.get("error") or "") if isinstance(told, dict) else ""
            raise OpenIdError(f"the provider at {where} answered {answer.status}{f': {why[:200]}' if why else ''}")
        return told


def _check_extra() -> None:
    try:
        import jwt
        from cryptography.hazmat.primitives import hashes  # noqa: F401 -- without it PyJWT knows no RS256
    except ImportError:
        raise MissingExtra("pyjwt[crypto]", "accounts") from None
    assert jwt
