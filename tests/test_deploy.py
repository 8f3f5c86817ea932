"""What `deploy` says is right as far as can be seen without an engine: linted, for options that exist, and closed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from dockerfile_parse import DockerfileParser
from yamllint.config import YamlLintConfig
from yamllint.linter import run as lint

from ppspeech import __version__
from ppspeech.cli import app

TOP = Path(__file__).parents[1]
DEPLOY = TOP / "deploy"
MANIFESTS = ("compose.yaml", "kubernetes.yaml")
IMAGE = f"ppspeech:{__version__}"


def options(words: list[str]) -> dict[str, Any]:
    """What `ppspeech` reads of a command line; an option that there is not, or a value that cannot be, raises."""
    command: Any = typer.main.get_command(app)
    assert words[0] == "serve"
    context = command.commands["serve"].make_context("serve", list(words[1:]))
    return dict(context.params)


def problems(text: str) -> list[str]:
    """What the linter finds."""
    return [str(each) for each in lint(text, YamlLintConfig(file=str(DEPLOY / ".yamllint")))]


def composed() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def in_kubernetes(kind: str) -> dict[str, Any]:
    (found,) = [each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()) if each["kind"] == kind]
    return dict(found)


def pod() -> dict[str, Any]:
    return dict(in_kubernetes("Deployment")["spec"]["template"]["spec"])


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_linter_finds_nothing(name: str) -> None:
    assert problems((DEPLOY / name).read_text()) == []


@pytest.mark.parametrize("text", ["---\na: 1\na: 2\n", "---\na: 1 \n", "a:\n   - 1\n  - 2\n"])
def test_the_linter_can_find_something(text: str) -> None:
    assert problems(text)


def parsed(folder: Path) -> DockerfileParser:
    (folder / "Dockerfile").write_text((DEPLOY / "Containerfile").read_text())
    return DockerfileParser(str(folder))


def test_the_image(tmp_path: Path) -> None:
    """Of pinned parts, for nobody in particular, with nothing of ours in it but the package."""
    read = parsed(tmp_path)
    steps = [(step["instruction"], step["value"]) for step in read.structure if step["instruction"] != "COMMENT"]
    assert all(re.search(r":\d+\.\d+\.\d+-", image) for image in read.parent_images)
    assert set(read.parent_images) == {read.baseimage}
    copied = [value.split()[:-1] for instruction, value in steps if instruction == "COPY" and "--from" not in value]
    assert {"ppspeech", "pyproject.toml", "requirements.lock"} <= {each for files in copied for each in files}
    assert all((TOP / each).exists() for files in copied for each in files)
    assert not any(instruction == "ADD" for instruction, _ in steps)
    (uv,) = re.findall(r"uv==([\d.]+)", read.content)
    assert f"uv=={uv} " in (TOP / "requirements.lock").read_text()
    last = dict(steps)  # the last of each
    assert (last["USER"], last["STOPSIGNAL"], last["ENTRYPOINT"]) == ("10001", "SIGTERM", '["ppspeech"]')
    assert options(["serve", "words"])["listen"].endswith(":7000")


READ_ONLY = """
import os
os.access = lambda *_, **__: False
import ppspeech
from numba.core import caching
plain = caching._CacheLocator.ensure_cache_path
def ensured(locator):
    if not locator.get_cache_path().startswith(os.environ["PPSPEECH_CACHE"]):
        raise OSError("read-only file system")
    plain(locator)
caching._CacheLocator.ensure_cache_path = ensured
import ppspeech.crypto.garbled.half_gates, ppspeech.crypto.lattice.ntt, ppspeech.crypto.packing
"""


def test_what_is_compiled_is_kept_where_an_image_may_write(tmp_path: Path) -> None:
    """Its root is read-only, and its user has no home: there is /tmp, and what is imported must do with that."""
    kept = parsed(tmp_path).envs["PPSPEECH_CACHE"]
    assert kept.startswith("/tmp/")
    assert [each.partition(":")[0] for each in composed()["services"]["server"]["tmpfs"]] == ["/tmp"]
    assert "/tmp" in {each["mountPath"] for each in pod()["containers"][0]["volumeMounts"]}
    environment = {"PPSPEECH_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(TOP)}
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cache" / "numba").is_dir()


def served() -> dict[str, list[str]]:
    return {"compose": composed()["services"]["server"]["command"], "kubernetes": pod()["containers"][0]["args"]}


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_servers_are_started_by_options_that_exist(where: str) -> None:
    given = options(served()[where])
    assert given["store"].startswith("postgresql://ppspeech@")
    assert " " not in given["store"]
    from ppspeech.cli.serve import is_port
    from ppspeech.service.store import refuse_password

    assert refuse_password(given["store"])
    assert is_port(given["metrics"])
    assert given["store_key"] is not None
    assert not given["insecure"]
    assert "sslmode=verify-full" in given["store"] or composed()["networks"]["inside"] == {"internal": True}


@pytest.mark.parametrize("words", [["serve", "words", "--stored=x"], ["serve", "words", "--drain=soon"]])
def test_other_options_would_be_seen(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"(?i)no such option|valid number"):
        options(words)


def test_compose_gives_every_secret_that_is_used_and_no_more() -> None:
    all_of_it = composed()
    server, database = all_of_it["services"]["server"], all_of_it["services"]["database"]
    used = set(re.findall(r"/run/secrets/(\w+)", " ".join(server["command"])))
    assert used == set(server["secrets"])
    assert {*server["secrets"], *database["secrets"]} == set(all_of_it["secrets"])
    assert server["image"] == IMAGE
    assert (server["build"]["context"], server["build"]["dockerfile"]) == ("..", "deploy/Containerfile")
    assert server["read_only"]
    assert server["cap_drop"] == ["ALL"]
    assert "ports" not in database
    assert database["networks"] == ["inside"]
    assert seconds(server["stop_grace_period"]) > options(server["command"])["drain"]
    assert "9464" not in " ".join(server["ports"])  # who watches is inside


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_kubernetes_drains_before_it_kills() -> None:
    (server,) = pod()["containers"]
    pause = int(server["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod()["terminationGracePeriodSeconds"] > pause + options(server["args"])["drain"]
    ports = {each["name"]: each["containerPort"] for each in server["ports"]}
    assert options(server["args"])["listen"].endswith(f":{ports['speech']}")
    assert options(server["args"])["metrics"].endswith(f":{ports['metrics']}")
    for probe, path in (("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
        assert server[probe]["httpGet"] == {"path": path, "port": "metrics"}


def test_kubernetes_runs_as_nobody_and_keeps_secrets_in_files() -> None:
    (server,) = pod()["containers"]
    assert server["image"] == IMAGE
    assert pod()["securityContext"]["runAsNonRoot"]
    assert not pod()["automountServiceAccountToken"]
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "env" not in server
    mounted = {each["mountPath"]: each["name"] for each in server["volumeMounts"]}
    for path in re.findall(r"/run/secrets/ppspeech/[\w.-]+", " ".join(server["args"])):
        assert mounted[str(Path(path).parent)] == "secrets"
    (secret,) = [each["secret"] for each in pod()["volumes"] if each["name"] == "secrets"]
    assert secret["defaultMode"] & 0o077 == 0
    assert {"cpu", "memory"} <= set(server["resources"]["limits"]) & set(server["resources"]["requests"])


def test_a_tcp_service_finds_the_servers() -> None:
    service, servers = in_kubernetes("Service")["spec"], in_kubernetes("Deployment")["spec"]
    assert service["selector"] == servers["selector"]["matchLabels"] == servers["template"]["metadata"]["labels"]
    (port,) = service["ports"]
    assert (port["protocol"], port["targetPort"]) == ("TCP", "speech")
    assert service["externalTrafficPolicy"] == "Local"
    assert in_kubernetes("PodDisruptionBudget")["spec"]["minAvailable"] < servers["replicas"]
