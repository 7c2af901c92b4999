"""The Helm chart: linted and filled in by the real helm, then checked as the plain manifests are."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from levada.cli.app import app
from levada.core.settings import Settings, load_settings
from tests.needs import missing

CHART = Path(__file__).parents[2] / "deploy/helm/levada"
VALUES = ("values.yaml", "values-large.yaml")
HELM = "v3.22.0"  # as in tests/servers/install-go.sh
KUBERNETES = "1.33"


def helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    kept = cache / "levada-tests" / f"helm-{HELM}"
    program = str(kept) if kept.exists() else shutil.which("helm")
    if program is None:
        missing("helm is not installed: run tests/servers/install-go.sh where Go is, or install it yourself")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def filled(values: str, *sets: str) -> list[dict[str, Any]]:
    given = [word for each in sets for word in ("--set", each)]
    done = helm("template", "news", CHART, "--values", CHART / values, *given)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def named(found: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (one,) = (each for each in found if each["kind"] == kind and each["metadata"]["name"] == name)
    return one


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_nothing_wrong(values: str) -> None:
    done = helm("lint", "--strict", CHART, "--values", CHART / values)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", VALUES)
def test_everything_fits_the_schema_of_kubernetes(values: str) -> None:
    found = filled(values, "ingress.enabled=true", "ingress.tlsSecret=tls", "serve.proxies[0]=10.0.0.0/8")
    assert {"Deployment", "Service", "Ingress", "PodDisruptionBudget", "NetworkPolicy"} <= {
        each["kind"] for each in found
    }
    for each in found:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


@pytest.mark.parametrize("values", VALUES)
def test_every_pod_is_closed_and_says_whether_it_is_ready(values: str) -> None:
    for each in filled(values):
        if each["kind"] != "Deployment":
            continue
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert {"readinessProbe", "livenessProbe"} <= container.keys()
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            for variable in container["env"]:
                assert "PASSWORD" not in variable["name"] or "valueFrom" in variable
        volumes = [kind for volume in pod["volumes"] for kind in volume if kind != "name"]
        assert "persistentVolumeClaim" not in volumes, "pods share nothing"


@pytest.mark.parametrize("values", VALUES)
def test_the_commands_and_their_options_exist(values: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for each in filled(values, "serve.proxies[0]=10.0.0.0/8"):
        if each["kind"] != "Deployment":
            continue
        (container,) = each["spec"]["template"]["spec"]["containers"]
        name, *words = container["args"]
        known = {flag for param in commands[name].params for flag in param.opts}
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known


@pytest.mark.parametrize("values", VALUES)
def test_the_settings_are_settings(values: str, tmp_path: Path) -> None:
    text = named(filled(values), "ConfigMap", "news-settings")["data"]["levada.toml"]
    tomllib.loads(text)
    file = tmp_path / "levada.toml"
    file.write_text(text)
    settings = load_settings(file)
    assert isinstance(settings, Settings)
    assert settings.index.engine == "opensearch"


def test_control_may_scale_what_it_scales_and_nothing_else() -> None:
    found = filled("values.yaml")
    rule = named(found, "Role", "news-control")["rules"][0]
    workers = {"news-fetch", "news-catalog"}
    assert set(rule["resourceNames"]) == workers
    (container,) = named(found, "Deployment", "news-control")["spec"]["template"]["spec"]["containers"]
    scaled = {word.rpartition(",")[2] for word in container["args"] if word.startswith(("--fetch=", "--catalog="))}
    assert scaled == workers
    assert all("replicas" not in named(found, "Deployment", name)["spec"] for name in workers)
