"""`voices learn`, and `verify`, `serve`, `enroll` of what it makes; mixtures of the shipped recipe: as typed."""

import json
from pathlib import Path

import pytest

from ppspeech.audio import write_audio
from tests.bundle.test_voices import others
from tests.cli.test_encrypted_cli import run, start
from tests.cli.test_speaker_cli import stopped
from tests.service.voices import RATE, SPEAKERS, released, voice

__all__ = ["others"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for seed in (0, 1, 5):
        write_audio(folder / f"{seed}.wav", voice(seed, 0.6), RATE)
    return folder


def test_a_bundle_of_voices_is_made_used_and_served(others: Path, folder: Path, tmp_path: Path) -> None:
    bundle, mine = tmp_path / "voices", folder / "0.wav"
    shown = run("voices", "learn", others, "--out", bundle)
    assert "the voices of 6 people of others are in the bundle" in shown
    assert "they must agree to it" in shown
    assert "there already" in run("voices", "learn", others, "--out", bundle, code=2)
    told = json.loads(run("voices", "learn", others, "--public", "--out", tmp_path / "public", "--json"))
    assert (told["type"], told["people"], told["public"]) == ("voice_embedding", 6, True)
    assert "--built-in or --without" in run("voices", "learn", "--out", tmp_path / "x", code=2)
    assert "no folder" in run("voices", "learn", tmp_path / "absent", "--out", tmp_path / "x", code=2)
    asked = ["verify", bundle, mine, "--enroll", mine, "--json"]
    strict, loose = (json.loads(run(*asked, "--false-accept", rate)) for rate in ("0.01", "0.5"))
    assert strict["threshold"] > loose["threshold"]
    assert strict["score"] > 0.99
    served, words = start(bundle, "--listen", "127.0.0.1:0", "--enroll", "--speakers", "places=3,threshold=0.99")
    with stopped(served):
        place = json.loads(run("enroll", bundle, mine, "--name", "ann", *words, "--json"))["place"]
        assert json.loads(run("verify", bundle, mine, "--claim", place, *words, "--json"))["accepted"] is True
        other = json.loads(run("verify", bundle, folder / "5.wav", "--claim", place, *words, "--json"))
        assert other["accepted"] is False
        assert json.loads(run("identify", bundle, mine, *words, "--json"))["speaker"] == "ann"
    shown = run("encrypt-plan", bundle, "--places", "4")
    assert "linear identify" in shown
    assert "gmm verify" not in shown


def test_mixtures_of_a_bundle_without_a_cohort_are_served_among_people_who_are_given(
    others: Path, folder: Path, tmp_path: Path
) -> None:
    """`serve --scoring gmm`: what `ppspeech train speaker_ubm` gives has no cohort, and needs one here."""
    released(tmp_path / "ubm", SPEAKERS)
    serving = [tmp_path / "ubm", "--listen", "127.0.0.1:0", "--enroll", "--frames", "20", "--scoring", "gmm"]
    assert "cohort=synthetic" in run("serve", *serving, code=2)
    served, words = start(*serving, "--cohort", others, "--speakers", "places=2,false_accept=0.5")
    with stopped(served):
        mine = folder / "0.wav"
        place = json.loads(run("enroll", tmp_path / "ubm", mine, "--name", "ann", *words, "--json"))["place"]
        answers = [
            json.loads(run("verify", tmp_path / "ubm", clip, "--claim", place, *words, "--json"))["accepted"]
            for clip in (mine, folder / "1.wav")
        ]
        assert answers == [True, False]
