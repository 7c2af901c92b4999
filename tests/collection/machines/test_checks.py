"""`levada doctor --cluster`: every engine is asked, and each trouble has a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from levada.collection.machines.checks import _server
from tests.cli.collection import command
from tests.servers.private import free_ports

pytest_plugins = ["tests.servers.fixtures"]
doctor = command("doctor")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEVADA_RABBITMQ", raising=False)


def asked(folder: Path, *servers: str, rabbitmq: str = "") -> tuple[int, list[dict[str, Any]]]:
    config = folder / "levada.toml"
    config.write_text(f"[store]\nservers = {json.dumps(servers)}\n")
    broker = ("--rabbitmq", rabbitmq) if rabbitmq else ()
    answer = doctor("--cluster", "--data", folder / "none", "--config", config, "--json", *broker)
    return answer.code, json.loads(answer.out)["checks"]


def told(checks: list[dict[str, Any]], verdict: str) -> str:
    return "\n".join(
        f"{each['name']}: {each['found']} -> {each['advice']}" for each in checks if each["verdict"] == verdict
    )


def test_engines_that_are_in_order_are_said_to_be(tmp_path: Path, postgresql: str, rabbitmq: str) -> None:
    code, checks = asked(tmp_path, postgresql, rabbitmq=rabbitmq)
    assert code == 0, told(checks, "fail")
    found = told(checks, "ok")
    for part in ("a primary", "connections of", "rights on", "agrees with that of this machine", "a queue was made"):
        assert part in found
    assert "durability" in told(checks, "warn")  # the server of the tests does not sync


def test_nobody_listens_there(tmp_path: Path) -> None:
    store, queue = free_ports(2)
    code, checks = asked(
        tmp_path, f"postgresql://u:sEcret@127.0.0.1:{store}/x", rabbitmq=f"amqp://u:sEcret@127.0.0.1:{queue}/"
    )
    assert code == 1
    failures = told(checks, "fail")
    assert f"127.0.0.1:{store}" in failures
    assert f"RabbitMQ at 127.0.0.1:{queue} does not answer" in failures
    assert "sEcret" not in failures


def test_a_user_without_rights_is_said_what_to_grant(tmp_path: Path, postgresql: str) -> None:
    with psycopg.connect(postgresql, autocommit=True) as session:
        session.execute("DROP DATABASE IF EXISTS doctored")
        session.execute("DROP ROLE IF EXISTS nobody_much")
        session.execute("CREATE ROLE nobody_much LOGIN")
        session.execute("CREATE DATABASE doctored")
    code, checks = asked(tmp_path, make_conninfo(postgresql, user="nobody_much", dbname="doctored"))
    assert code == 1
    assert "GRANT CREATE ON DATABASE doctored TO nobody_much" in told(checks, "fail")


def test_a_standby_is_no_primary() -> None:
    """The answer of a standby, as PostgreSQL gives it: the tests of failovers have a real one."""

    class Standby:
        def execute(self, _: bytes) -> Standby:
            return self

        def fetchone(self) -> tuple[object, ...]:
            return ("15.9", True, "UTF8", True, "levada", "levada", 97, 3, True, True)

    (found,) = _server(Standby(), "PostgreSQL at db2")  # type: ignore[arg-type]
    assert found.verdict == "fail"
    assert "target_session_attrs=read-write" in found.advice


def test_a_wrong_password_of_the_broker_is_said(tmp_path: Path, rabbitmq: str) -> None:
    code, checks = asked(tmp_path, rabbitmq=rabbitmq.replace("guest:guest", "guest:wr0ng"))
    assert code == 1
    assert "refused the user, password or virtual host" in told(checks, "fail")
    assert "wr0ng" not in told(checks, "fail")


def test_what_is_wrong_is_printed_with_what_to_do(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    answer = doctor("--cluster", "--data", tmp_path / "none", "--rabbitmq", f"amqp://127.0.0.1:{port}/")
    assert answer.code == 1
    assert "fail  RabbitMQ at 127.0.0.1" in answer.out
    assert "1 failed" in answer.out
