"""The Kubernetes manifests fit each other, and the command that they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from levada.cli.app import app
from levada.collection.control import parse_stage

FOLDER = Path(__file__).parents[2] / "deploy/kubernetes"
OPTIONS = {
    flag
    for param in typer.main.get_command(app).commands["control"].params  # type: ignore[attr-defined]
    for flag in param.opts
}


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def of_kind(kind: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in objects(name) if each["kind"] == kind)
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = of_kind("Deployment", name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", ["control-keda.yaml", "control-plain.yaml"])
def test_the_command_is_one_that_levada_understands(name: str) -> None:
    held = container(name)
    assert held["command"] == ["levada", "control"]
    assert {word for word in held["args"] if word.startswith("--")} <= OPTIONS
    assert of_kind("Deployment", name)["spec"]["replicas"] == 1
    assert "LEVADA_RABBITMQ" in {each["name"] for each in held["env"]}


def test_keda_asks_where_levada_answers_for_a_stage_that_there_is() -> None:
    arguments = container("control-keda.yaml")["args"]
    stage = parse_stage(arguments[arguments.index("--stage") + 1])
    scaled = of_kind("ScaledObject", "scaled-object.yaml")["spec"]
    (trigger,) = scaled["triggers"]
    service = of_kind("Service", "control-keda.yaml")
    port = service["spec"]["ports"][0]["port"]
    assert trigger["type"] == "external"
    assert trigger["metadata"] == {"scalerAddress": f"{service['metadata']['name']}:{port}", "stage": stage.name}
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (stage.least, stage.most)
    assert arguments[arguments.index("--keda") + 1].endswith(f":{port}")
    assert scaled["scaleTargetRef"]["name"] == of_kind("Deployment", "resizer.yaml")["metadata"]["name"]


def test_the_plain_one_may_change_the_scale_of_its_deployment_and_nothing_else() -> None:
    arguments = container("control-plain.yaml")["args"]
    stage = parse_stage(arguments[arguments.index("--stage") + 1])
    assert stage.command == of_kind("Deployment", "resizer.yaml")["metadata"]["name"]
    (rule,) = of_kind("Role", "control-plain.yaml")["rules"]
    assert rule == {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "resourceNames": [stage.command],
        "verbs": ["get", "patch"],
    }
