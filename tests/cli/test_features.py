"""`ppspeech features` on many clips, of which some cannot be used."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ppspeech.audio import write_audio
from ppspeech.cli import app


def run(*words: str | Path, code: int) -> str:
    result = CliRunner().invoke(app, ["features", *(str(word) for word in words)])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


@pytest.fixture
def clips(tmp_path: Path) -> list[Path]:
    """A good one, a silent one, one that is no sound, one of 8 kHz."""
    noise = 0.1 * torch.randn(8_000, generator=torch.Generator().manual_seed(0))
    write_audio(tmp_path / "good.wav", noise, 16_000)
    write_audio(tmp_path / "silent.wav", torch.zeros(8_000), 16_000)
    (tmp_path / "text.wav").write_text("no sound")
    write_audio(tmp_path / "narrow.wav", noise, 8_000)
    return [tmp_path / f"{name}.wav" for name in ("silent", "good", "text", "narrow")]


def test_good_clips_are_saved_and_bad_ones_told(clips: list[Path], tmp_path: Path) -> None:
    said = run(*clips, "--out", tmp_path / "f.npz", "--picture", tmp_path / "p.png", code=1)
    assert said.count("not used: ") == 2
    assert "nothing above 4,000 Hz" in said
    assert list(np.load(tmp_path / "f.npz")) == [str(clips[1]), str(clips[3])]
    assert (tmp_path / "p.png").exists()


def test_as_json(clips: list[Path]) -> None:
    rows = [json.loads(line) for line in run(*clips, "--json", code=1).splitlines() if line.startswith("{")]
    assert [Path(row["clip"]).stem for row in rows] == ["good", "narrow", "silent", "text"]
    assert rows[0]["frames"] == 48
    assert "warning" in rows[1]
    assert all("error" in row for row in rows[2:])


def test_a_single_bad_clip_is_an_error(clips: list[Path]) -> None:
    assert "error: " in run(clips[0], code=2)


def test_a_narrow_clip_is_right_for_a_narrow_front_end(clips: list[Path]) -> None:
    assert "warning" not in run(clips[3], "--band", "narrow", code=0)
