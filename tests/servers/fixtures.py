"""The servers as fixtures; where one is not installed, its tests are skipped, or fail where CI=true."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.needs import missing, package
from tests.servers.holding import held
from tests.servers.versitygw import use_keys

__all__ = [
    "mariadb",
    "opensearch",
    "postgresql",
    "postgresql_trio",
    "rabbitmq",
    "redis",
    "redis_cluster",
    "s3",
    "versitygw",
]


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a RabbitMQ; give queues a prefix of your own."""
    yield from _server("rabbitmq", tmp_path_factory)


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL, as its superuser; make a database of your own."""
    yield from _server("postgresql", tmp_path_factory)


@pytest.fixture(scope="session")
def postgresql_trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of three PostgreSQL instances, as their superusers."""
    for addresses in _server("postgresql_trio", tmp_path_factory):
        yield addresses.split()


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Redis; give keys a prefix of your own."""
    yield from _server("redis", tmp_path_factory)


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one of three masters of a Redis Cluster; give keys a prefix of your own."""
    yield from _server("redis_cluster", tmp_path_factory)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a MariaDB, as its superuser; make a database of your own."""
    yield from _server("mariadb", tmp_path_factory)


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of an S3 server with a bucket; use a prefix of your own, and the fixture `s3` for its keys."""
    yield from _server("versitygw", tmp_path_factory)


@pytest.fixture
def s3(versitygw: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The endpoint, with its keys in the environment."""
    package("obstore")
    use_keys(monkeypatch)
    return versitygw


@pytest.fixture(scope="session")
def opensearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node of OpenSearch; name collections of your own."""
    yield from _server("opensearch", tmp_path_factory)


def _server(name: str, folders: pytest.TempPathFactory) -> Iterator[str]:
    if not import_module(f"tests.servers.{name}").Server.installed():
        missing(f"{name} is not installed: run tests/servers/install.sh as root, or install it yourself")
    own = folders.getbasetemp()
    parallel = "PYTEST_XDIST_WORKER" in os.environ  # then the folder above is the run's
    with held(name, own.parent if parallel else own) as address:
        yield address
