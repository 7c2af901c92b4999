"""Bodies in a bucket, by the protocol of S3, over obstore.

Credentials are those that other programs of AWS use: the environment, a profile in ~/.aws, or what the machine gives
(EC2, ECS, EKS). `[bodies]` can name the place of a key instead. No message holds what a server said in full: it may
repeat the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from levada.core.errors import BodiesAway, MissingExtra, SettingsError, StoreError, StoreFull
from levada.core.secrets import read_secret
from levada.store.bodies.places import Listed

if TYPE_CHECKING:
    from levada.core.settings import BodiesSettings

P = ParamSpec("P")
T = TypeVar("T")

_RETRIES = 2
_AT_ONCE = 1_000  # keys in a listing and in a deletion
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_STATUS = re.compile(r"non-2xx status code: (\d{3})|status(?: code)?:? (\d{3})")
_FULL = {"QuotaExceeded", "InsufficientStorage", "StorageFull", "XMinioStorageFull"}
_METADATA = ("169.254.169.254", "169.254.170.2", "/latest/api/token", "security-credentials")
_ADVICE = "check the keys (AWS_ACCESS_KEY_ID, AWS_PROFILE or [bodies]) and what they may do"


def _translating(method: Callable[Concatenate[S3Place, P], T]) -> Callable[Concatenate[S3Place, P], T]:
    @wraps(method)
    def translated(self: S3Place, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except (StoreError, SettingsError):
            raise
        except Exception as error:
            raise self.translated(error) from None  # its text may repeat the key

    return translated


class S3Place:
    """A bucket, or what lies under a prefix in one."""

    def __init__(self, bucket: str, prefix: str, settings: BodiesSettings) -> None:
        try:
            import obstore
            from obstore.store import S3Store
        except ImportError:
            raise MissingExtra("obstore", "s3") from None

        self.name = f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}"
        self._bucket = bucket
        self._obstore: Any = obstore
        config, endpoint = _config(settings)
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                config=config,  # type: ignore[arg-type]
                client_options={
                    "allow_http": endpoint.startswith("http://"),
                    "timeout": timedelta(seconds=settings.seconds),
                    "connect_timeout": timedelta(seconds=min(settings.seconds, 5.0)),
                },
                retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=settings.seconds)},
            )
        except Exception as error:
            raise SettingsError(f"{self.name} cannot be used: {_plain(str(error))}") from None

    @_translating
    def put(self, key: str, content: bytes) -> None:
        self._obstore.put(self._store, key, content, use_multipart=False)

    @_translating
    def get(self, key: str) -> bytes | None:
        try:
            return bytes(self._obstore.get(self._store, key).bytes())
        except FileNotFoundError as error:
            _must_be_of_object(error)
            return None

    @_translating
    def size(self, key: str) -> int | None:
        try:
            return int(self._obstore.head(self._store, key)["size"])
        except FileNotFoundError:  # of an answer without a body: it says not what is missing
            return None

    @_translating
    def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _AT_ONCE):
            some = list(keys[start : start + _AT_ONCE])
            try:
                self._obstore.delete(self._store, some)
            except FileNotFoundError as error:
                _must_be_of_object(error)

    def list(self) -> Iterator[list[Listed]]:
        objects = iter(self._obstore.list(self._store, chunk_size=_AT_ONCE))
        while some := self._next(objects):
            yield [Listed(each["path"], int(each["size"]), each["last_modified"].timestamp()) for each in some]

    @_translating
    def _next(self, objects: Iterator[Any]) -> Any:
        return next(objects, None)

    def translated(self, error: Exception) -> StoreError:
        """One sentence that says what happened and what to do, without what the server said in full."""
        exceptions, said = self._obstore.exceptions, str(error)
        line = said.partition("\n\nDebug source")[0]
        code = found[1] if (found := _CODE.search(line)) else ""
        status = found[1] or found[2] if (found := _STATUS.search(line)) else ""
        if any(word in line for word in _METADATA):
            return StoreError(
                f"there are no credentials for {self.name}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                "AWS_PROFILE, or [bodies]"
            )
        if code == "NoSuchBucket":
            return StoreError(f"there is no bucket {self._bucket} for {self.name}: make it, or correct store.bodies")
        if code in _FULL or status == "507":
            return StoreFull(f"no space left for bodies in {self.name}{_in(code)}: make room, then start again")
        refused = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, FileNotFoundError)
        if isinstance(error, refused) or status in ("401", "403", "404"):
            return StoreError(f"{self.name} refuses access{_in(code)}: {_ADVICE}")
        if status.startswith("4") and status not in ("408", "425", "429"):
            return StoreError(f"{self.name} refuses a request{_in(code or status)}: check the endpoint and the region")
        return BodiesAway(f"{self.name} cannot be reached now{_in(code or status or _why(said))}")


def _must_be_of_object(error: FileNotFoundError) -> None:
    """Raise it unless it is the object that is not there: a bucket or a user may be missing as well."""
    code = _CODE.search(str(error))
    if code is not None and code[1] not in ("NoSuchKey", "NoSuchVersion", "NotFound"):
        raise error


def _in(code: str) -> str:
    return f" ({code})" if code else ""


def _why(said: str) -> str:
    """The reason of a failure to connect, in the words of the system."""
    known = {
        "timed out": "timed out",
        "timeout": "timed out",
        "Connection refused": "connection refused",
        "dns error": "its name is not known",
        "reset": "connection reset",
        "ertificate": "its certificate is not trusted",
    }
    return next((words for mark, words in known.items() if mark in said), "")


def _plain(said: str) -> str:
    return " ".join(said.split())[:200]


def _config(settings: BodiesSettings) -> tuple[dict[str, Any], str]:
    """The options of the client, and the endpoint."""
    profile = _profile()
    environment = os.environ
    endpoint = (
        settings.endpoint
        or environment.get("AWS_ENDPOINT_URL_S3", "")
        or environment.get("AWS_ENDPOINT_URL", "")
        or profile.get("endpoint_url", "")
    )
    region = (
        settings.region
        or environment.get("AWS_REGION", "")
        or environment.get("AWS_DEFAULT_REGION", "")
        or profile.get("region", "us-east-1")
    )
    config: dict[str, Any] = {"region": region, "virtual_hosted_style_request": not settings.path_style}
    if endpoint:
        config["endpoint"] = endpoint
    if settings.access_key and settings.secret_key:
        config["access_key_id"] = read_secret(settings.access_key)
        config["secret_access_key"] = read_secret(settings.secret_key)
    elif not environment.get("AWS_ACCESS_KEY_ID") and "aws_access_key_id" in profile:
        config["access_key_id"] = profile["aws_access_key_id"]
        config["secret_access_key"] = profile.get("aws_secret_access_key", "")
        if token := profile.get("aws_session_token"):
            config["session_token"] = token
    return config, endpoint


def _profile() -> dict[str, str]:
    """What ~/.aws says of the profile; an error if one is named that is not there or has no keys."""
    named = os.environ.get("AWS_PROFILE", "")
    name = named or "default"
    found: dict[str, str] = {}
    for variable, usual, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        path = Path(os.environ.get(variable) or usual).expanduser()
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeError, ConfigError):
            raise SettingsError(f"{path} cannot be read: correct it, or name another with {variable}") from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if named and not os.environ.get("AWS_ACCESS_KEY_ID") and "aws_access_key_id" not in found:
        raise SettingsError(
            f"the profile {named} of AWS_PROFILE has no access key in ~/.aws: name one with keys, or put them into the "
            "environment ('aws configure export-credentials' gives those of a login)"
        )
    return found
