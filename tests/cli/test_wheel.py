"""What `pip install` brings: the command, recipes, training from them and a word by a server, far from the project."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ppspeech import serve
from ppspeech.audio import write_audio
from ppspeech.service import Deployment
from tests.service.voices import RATE, released, voice

TOP = Path(__file__).parents[2]
CONFIGS = sorted(path.name for path in (TOP / "configs").glob("*.yaml"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=TOP, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def run(place: Path, installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command as a stranger has it: only the unpacked wheel, and some folder to work in."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PPSPEECH_CACHE": str(place / "cache")}
    command = [sys.executable, "-m", "ppspeech", *words]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_a_wheel_brings_the_recipes_and_the_page(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    assert [name for name in CONFIGS if f"ppspeech/configs/{name}" in names] == CONFIGS
    assert not [name for name in names if name.startswith(("tests/", "configs/", "notebooks/"))]
    assert "ppspeech/py.typed" in names
    for name in ("index.html", "page.css", "page.js", "client.js", "recorder.js", "remote.js", "worker.js"):
        assert f"ppspeech/service/page/{name}" in names
    listed = run(tmp_path, tmp_path / "installed", "train")
    assert listed.returncode == 0, listed.stderr
    for name in CONFIGS:
        assert name.removesuffix(".yaml") in listed.stdout
    missing = run(tmp_path, tmp_path / "installed", "train", "keyword_hm")
    assert (missing.returncode, "did you mean keyword_hmm" in missing.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_wheel_trains_on_a_folder_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """A fresh environment with the wheel; what it depends on is borrowed from this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    install = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True)
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PPSPEECH_CACHE"] = str(tmp_path / "cache")

    def run_here(*words: str) -> str:
        command = [str(tmp_path / "venv" / "bin" / "python"), *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "torch" in run_here("-m", "ppspeech", "info")
    assert str(site) in run_here("-c", "import ppspeech; print(ppspeech.__file__)")
    run_here("-m", "ppspeech", "synth", "mine", "--words", "go,stop,left", "--speakers", "8")
    training = ("train", "keyword_hmm", "--data.corpus", "mine", "--trainer.enable_progress_bar", "false")
    assert "ppspeech export" in run_here("-m", "ppspeech", *training, "--expect", "{}")
    (checkpoint,) = (tmp_path / "runs").rglob("*.ckpt")
    run_here("-m", "ppspeech", "export", str(checkpoint), "--out", "words", "--not-private")
    clear, encrypted = run_here("-c", LOOPBACK).split()
    assert clear == encrypted


LOOPBACK = """
from ppspeech import connect, load_bundle, serve
from ppspeech.data import load_corpus
clip = next(each.path for each in load_corpus("mine") if each.word == "stop")
print(load_bundle("words").recognize(clip).value)
with serve("words") as server, connect(server.address, pin=server.pin) as client:
    print(client.recognize(clip).value)
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_client_installs_light_and_asks(wheel: Path, tmp_path: Path) -> None:
    """In a fresh environment, with no lock, nothing but what a client needs: it is told the word by a server."""
    python = tmp_path / "venv" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", str(python), f"{wheel}[client]"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode and "network" in done.stderr.lower():
        pytest.skip(f"no package registry here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PPSPEECH_CACHE"] = str(tmp_path / "cache")

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(python.with_name("ppspeech")), *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert "not installed" in ask("info").stdout
    refused = ask("train", "keyword_hmm")
    assert (refused.returncode, "ppspeech[full]" in refused.stderr) == (2, True), refused.stderr
    clear = released(tmp_path / "words").recognize(voice(1), RATE)
    write_audio(tmp_path / "clip.wav", voice(1), RATE)
    with serve(tmp_path / "words", words=Deployment(frames=40)) as server:
        told = ask("recognize", server.address, "clip.wav", "--pin", str(server.pin), "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["word"] == clear.value or clear.margin < 0.5


@pytest.mark.slow
def test_a_wheel_of_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path) -> None:
    """What is handed out as source builds what is handed out built."""
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path), "--target"]
    subprocess.run([*build, "sdist"], cwd=TOP, check=True, capture_output=True)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    assert (unpacked / "LICENSE").is_file()
    subprocess.run([*build, "wheel"], cwd=unpacked, check=True, capture_output=True)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
