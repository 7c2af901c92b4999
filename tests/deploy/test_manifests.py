"""The files in deploy/ are what the tools that read them expect, and name only what Levada has."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import typer
import yaml

from levada.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
VERSION = "1.33"


def resources(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def commands() -> set[str]:
    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_compose_file_fits_its_schema() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    jsonschema.validate(yaml.safe_load((DEPLOY / "compose.yaml").read_text()), schema)


def test_a_compose_file_with_a_wrong_key_would_not_pass() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"services": {"a": {"imag": "x"}}}, schema)


@pytest.mark.parametrize("path", KUBERNETES, ids=[path.name for path in KUBERNETES])
def test_manifests_fit_the_schema_of_kubernetes(path: Path) -> None:
    for each in resources(path):
        if "." in each["apiVersion"].partition("/")[0] and not each["apiVersion"].endswith("k8s.io/v1"):
            continue  # KEDA's own kinds: checked below
        kubernetes_validate.validate(each, VERSION, strict=True)


def test_what_is_scaled_is_a_deployment_that_exists() -> None:
    everything = [each for path in KUBERNETES for each in resources(path)]
    deployed = {each["metadata"]["name"] for each in everything if each["kind"] == "Deployment"}
    scaled = [each for each in everything if each["kind"] == "ScaledObject"]
    assert scaled
    assert {each["spec"]["scaleTargetRef"]["name"] for each in scaled} <= deployed


def test_containers_of_levada_run_commands_that_exist() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values()
    asked = [service["command"] for service in compose if "levada" in service["image"]]
    for path in KUBERNETES:
        for each in resources(path):
            containers = each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
            asked += [
                [*container.get("command", ["levada"])[1:], *container["args"]]
                for container in containers
                if "levada" in container["image"]
            ]
    assert len(asked) >= 4
    assert {arguments[0] for arguments in asked} <= commands()


def test_no_secret_is_written_down() -> None:
    for path in [*KUBERNETES, DEPLOY / "compose.yaml", DEPLOY / "levada.toml"]:
        assert not re.search(r"(?i)password['\"]?\s*[:=]\s*['\"]?[a-z0-9]{4,}", path.read_text()), path.name
