"""The OpenAPI document is true: whatever is sent, no answer is a server error or one that it does not describe."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import positive_data_acceptance
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from levada.serve.access import Access, Tokens
from levada.serve.app import OPERATIONS, make_app, openapi
from levada.serve.lab_runs import Laboratory
from levada.serve.operations import API, Nothing
from levada.serve.view import View
from tests.cli.collection import build

ATOM = ("GET", f"{API}/changes.atom")
FITTING = [(each.method, API + each.path) for each in OPERATIONS] + [ATOM]
OTHER = [(each.method, API + each.path) for each in OPERATIONS if each.asks is not Nothing] + [ATOM]
ASKED = [(*each, GenerationMode.POSITIVE) for each in FITTING] + [(*each, GenerationMode.NEGATIVE) for each in OTHER]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a server over a small collection."""
    path = build(tmp_path_factory.mktemp("served") / "levada-data")
    app = make_app(
        View(path, Laboratory(path / "lab", ("false",))),
        Access(Tokens(), frozenset({"localhost", "testserver"}), lambda: 0.0),
    )
    return schemathesis.openapi.from_asgi(f"{API}/openapi.json", app)


@pytest.mark.parametrize(("method", "path", "mode"), ASKED)
def test_no_answer_is_a_server_error_or_undocumented(described: Any, method: str, path: str, mode: Any) -> None:
    """With what fits the description and with what does not; whether words make a query is not for it to say."""

    @given(case=described[path][method].as_strategy(generation_mode=mode))
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def asked(case: Any) -> None:
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    asked()


def test_every_operation_is_described_with_its_errors(api: TestClient) -> None:
    told = api.get("/api/v1/openapi.json").json()
    assert told == msgspec.json.decode(msgspec.json.encode(openapi()))
    names = [each["operationId"] for path in told["paths"].values() for each in path.values() if "operationId" in each]
    assert len(names) == len(set(names)) > 15
    for path in told["paths"].values():
        for each in path.values():
            assert each["summary"]
            assert {"401", "403"} <= set(each["responses"])
