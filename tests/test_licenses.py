"""What is required may be required by an Apache-2.0 package; what may not is in an extra, and everything is named."""

import json
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppspeech.cli import app
from ppspeech.licenses import APART, FITTING, NEEDED, Licensed, kind_of, licenses

PACKAGE = Path(__file__).parents[1] / "ppspeech"


@pytest.fixture(scope="module")
def every() -> list[Licensed]:
    return licenses()


def test_all_that_is_required_fits(every: list[Licensed]) -> None:
    core = {each.name: each for each in every if each.needed_for in NEEDED}
    assert {"torch", "numpy", "tenseal", "gmpy2", "jinja2", "typeshed-client"} <= set(core)  # what they need too
    light = {each.name for each in every if each.needed_for == "core"}
    assert {"numpy", "numba", "tenseal"} <= light
    assert not {"torch", "scipy", "matplotlib"} & light
    wrong = {name: each.license for name, each in core.items() if each.kind not in FITTING}
    assert not wrong
    assert core["gmpy2"].kind == "library"
    assert {name for name, each in core.items() if each.kind == "vendor"} <= {
        name for name in core if name.startswith(("nvidia-", "cuda-"))
    }


def test_what_does_not_fit_is_in_an_extra(every: list[Licensed]) -> None:
    phe = [each for each in every if each.name == "phe"]
    assert [(each.kind, each.needed_for not in NEEDED) for each in phe] == [("copyleft", True)] * len(phe)
    lines = metadata.requires("ppspeech") or []
    required = [line for line in lines if "extra ==" not in line or "extra == 'full'" in line]
    assert required
    assert not [line for line in required if line.startswith("phe")]


def test_what_is_apart_is_apart(every: list[Licensed]) -> None:
    """Its library is loaded by one program, which is started by its path and imports nothing of ours."""
    assert {each.name for each in every if each.kind == "apart"} == APART == {"espeakng-loader"}
    using = {path.name: path.read_text() for path in PACKAGE.rglob("*.py") if "espeakng_loader" in path.read_text()}
    assert set(using) == {"espeak.py"}
    assert "ctypes" not in using["espeak.py"]
    program = (PACKAGE / "audio" / "voices" / "espeak_process.py").read_text()
    assert "import ppspeech" not in program
    assert "from ppspeech" not in program


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", "permissive"),
        ("MPL-2.0 AND MIT", "library"),
        ("MIT AND GPL-3.0-only", "copyleft"),
        ("GNU Affero General Public License v3", "copyleft"),
        ("GNU Lesser General Public License v2 (LGPLv2)", "library"),
        ("MIT-CMU", "permissive"),
        ("LicenseRef-NVIDIA-Proprietary", "vendor"),
        ("limited", "unknown"),
        ("not stated", "unknown"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert kind_of("x", text) == kind


def test_the_command_lists_them(every: list[Licensed]) -> None:
    shown = CliRunner().invoke(app, ["info", "--licenses"], env={"COLUMNS": "160"})
    assert shown.exit_code == 0
    assert "all that is linked with fits Apache-2.0" in shown.output
    assert "run as a program of its own: espeakng-loader" in shown.output
    lines = CliRunner().invoke(app, ["info", "--licenses", "--json"]).output.splitlines()
    assert [json.loads(line)["name"] for line in lines] == [each.name for each in every]
