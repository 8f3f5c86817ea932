"""The picture of what each party saw."""

from pathlib import Path

import numpy as np
import pytest

from ppspeech.cli.transcripts import plot_views
from ppspeech.errors import PpspeechError
from ppspeech.network import Transcript, memory_pair
from ppspeech.protocols.message_kinds import Kind


def test_it_is_drawn_from_a_transcript_with_payloads(tmp_path: Path) -> None:
    frames = np.random.default_rng(0).normal(size=(30, 13))
    for keeps in (True, False):
        here, _ = memory_pair()
        record = Transcript(here, keep_payloads=keeps)
        record.send(Kind.QUERY, np.random.default_rng(1).bytes(2_000))
        if keeps:
            plot_views(frames, record, tmp_path / "seen.png")
            assert (tmp_path / "seen.png").read_bytes().startswith(b"\x89PNG")
            with pytest.raises(PpspeechError, match=r"\.png"):
                plot_views(frames, record, tmp_path / "seen.txt")
        else:
            with pytest.raises(PpspeechError, match="keep_payloads"):
                plot_views(frames, record, tmp_path / "other.png")
