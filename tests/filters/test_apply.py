"""Filtered features on disk: a corpus like others, without what is private, and with a statement that is true."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.cluster import HERE
from ppspeech.data import Samples, load_corpus
from ppspeech.errors import CorpusError, ModelError, PpspeechError, PrivacyError
from ppspeech.filters import FeatureNoise, LinearFilter
from ppspeech.filters.apply import private_file, read_filtered, write_filtered
from ppspeech.privacy.guarantee import Guarantee


def samples(frames: bool = False) -> Samples:
    """Nine samples of three people, sorted by person as corpora are."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(2 + i, 4) if frames else (4,) for i in range(9)]
    return Samples(
        [torch.randn(*shape, generator=generator) for shape in shapes],
        [f"word{i % 3}" for i in range(9)],
        [f"person{i // 3}" for i in range(9)],
        [f"r{i}" for i in range(9)],
    )


def written(folder: Path, frames: bool = False, **more: Any) -> tuple[LinearFilter, list[Tensor], Guarantee]:
    module, given = LinearFilter(4, 2), samples(frames)
    guarantee = write_filtered(folder, module, given, **{"keep": "word", **more})
    return module, list(given.inputs), guarantee


@pytest.mark.parametrize("frames", [False, True])
def test_what_is_written_is_what_the_filter_gives(tmp_path: Path, frames: bool) -> None:
    module, inputs, guarantee = written(tmp_path / "out", frames, about={"hides": "person"})
    read = read_filtered(tmp_path / "out")
    for place in range(9):
        # The recording says which sample it was; the order on disk is another one.
        index = int(read.recordings[place][1:])
        torch.testing.assert_close(read.inputs[place], module(inputs[index]).detach())
        assert (read.private[place], read.kept[place]) == (f"person{index // 3}", f"word{index % 3}")
    assert guarantee.kind == "none"
    statement = json.loads((tmp_path / "out" / "filtering.json").read_text())["statement"]
    assert statement["about"] == {"hides": "person"}
    assert "proves nothing" in statement["guarantee"]["caveat"]


class SomebodyElse:
    """Workers, while somebody else writes the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def each(self, function: Any, items: Any, what: str) -> Any:
        """As one process does it, but later."""
        self.module, self.inputs, _ = written(self.folder)
        return HERE.each(function, items, what)


def test_of_two_who_write_one_folder_one_is_told(tmp_path: Path) -> None:
    """Whose each sample was is said of those that are there: attackers, scored by another order, would find nobody."""
    first = SomebodyElse(tmp_path / "out")
    with pytest.raises(ModelError, match="exists already, made meanwhile"):
        written(tmp_path / "out", workers=first)
    read = read_filtered(tmp_path / "out")
    for place in range(9):
        index = int(read.recordings[place][1:])
        torch.testing.assert_close(read.inputs[place], first.module(first.inputs[index]).detach())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.private.csv"]


@pytest.mark.parametrize(
    ("keep", "label"), [("word", "word"), ("emotion", "emotion"), ("speaker", "speaker"), ("class", "word")]
)
def test_a_filtered_folder_is_a_corpus(tmp_path: Path, keep: str, label: str) -> None:
    written(tmp_path / "out", frames=True, keep=keep)
    corpus = load_corpus(tmp_path / "out")
    assert (len(corpus), corpus.features) == (9, 2)
    assert corpus.labels(label) == ("word0", "word1", "word2")
    if label != "speaker":
        assert len(corpus.speakers) == 9  # nobody is said to have spoken two of them
    others = {"word", "emotion", "gender", "speaker"} - {label, "speaker"}
    assert not any(corpus.labels(other) for other in others)


def test_nothing_in_the_folder_names_a_person(tmp_path: Path) -> None:
    orders = set()
    for trial in range(4):
        folder = tmp_path / f"out{trial}"
        written(folder, frames=True)
        for path in folder.rglob("*"):
            assert "person" not in path.name
            assert path.is_dir() or b"person0" not in path.read_bytes()
        with (folder / "manifest.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert set(rows[0]) == {"path", "speaker", "word"}
        assert sorted(row["word"] for row in rows) == sorted(f"word{i % 3}" for i in range(9))
        assert private_file(folder).stat().st_mode & 0o077 == 0
        orders.add(private_file(folder).read_text())
    assert len(orders) > 1  # 9! orders: four equal ones, or one as in the corpus, would show whose sample is whose


def test_noise_is_stated_for_a_person_with_as_many_samples_as_are_allowed(tmp_path: Path) -> None:
    noise, most = FeatureNoise(bound=1.0, epsilon=0.5), 30  # more than anyone has
    _, _, guarantee = written(tmp_path / "out", frames=True, noise=noise, most=most)
    assert guarantee.epsilon == pytest.approx(0.5 * most)
    statement = json.loads((tmp_path / "out" / "filtering.json").read_text())["statement"]
    assert statement["most_samples_of_one_person"] == most
    assert [line.split(":")[0] for line in statement["not_covered"]] == ["labels", "lengths"]
    assert Guarantee.from_json(statement["each_sample"]).epsilon == 0.5
    assert Guarantee.from_json(statement["each_sample"]).float_safe
    read = torch.cat(list(read_filtered(tmp_path / "out").inputs))
    # Clipped to norm 1, then two Laplace numbers of scale 2 sqrt(2) B / epsilon = 5.7: 9.5 on average, +- 0.8.
    assert 5 < read.norm(dim=-1).mean() < 14


def test_what_is_promised_does_not_tell_how_much_someone_said(tmp_path: Path) -> None:
    """Of two neighbors, one with a clip more, the statements are equal, and nobody has more than is allowed."""
    noise, most = FeatureNoise(bound=1.0, epsilon=0.5), 12
    told = []
    for name, left_out in (("all", ()), ("neighbor", (8,))):
        every = samples(frames=True)
        keep = [place for place in range(9) if place not in left_out]
        given = Samples(*([column[place] for place in keep] for column in (every.inputs, every.kept, every.private)),
                        [every.recordings[place] for place in keep])  # fmt: skip
        write_filtered(tmp_path / name, LinearFilter(4, 2), given, keep="word", noise=noise, most=most)
        told.append(json.loads((tmp_path / name / "filtering.json").read_text())["statement"])
        read = read_filtered(tmp_path / name)
        counts = dict.fromkeys(read.private, 0)
        for who, clip in zip(read.private, read.inputs, strict=True):
            counts[who] += len(clip)
        assert counts == {"person0": 9, "person1": 12, "person2": 12}
    assert told[0] == told[1]


def test_noise_and_a_public_number_go_together(tmp_path: Path) -> None:
    for given in ({"noise": FeatureNoise(bound=1.0, epsilon=0.5)}, {"most": 3}):
        with pytest.raises(PrivacyError, match="give both noise and most"):
            written(tmp_path / "out", **given)
    with pytest.raises(PrivacyError, match="most must be a whole number"):
        written(tmp_path / "out", noise=FeatureNoise(bound=1.0, epsilon=0.5), most=0)
    assert not list(tmp_path.iterdir())


def test_damage_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    written(folder)
    with pytest.raises(ModelError, match="exists already"):
        written(folder)
    good = {path: path.read_bytes() for path in [*folder.rglob("*.*"), private_file(folder)]}

    def damaged(path: Path, content: bytes, word: str) -> None:
        path.write_bytes(content)
        with pytest.raises(PpspeechError, match=word):
            read_filtered(folder)
        path.write_bytes(good[path])

    features = folder / "samples" / "000000.npy"
    damaged(features, b"rubbish", "holds no features")
    for name, array, word in (
        ("nan", np.full((1, 2), np.nan, np.float32), "finite"),
        ("double", np.zeros((1, 2)), "float32"),
        ("flat", np.zeros(2, np.float32), "shape"),
        ("wide", np.zeros((1, 3), np.float32), "3 features a frame where the corpus has 2"),
    ):
        np.save(tmp_path / name, array)
        damaged(features, (tmp_path / f"{name}.npy").read_bytes(), word)
    manifest = folder / "manifest.csv"
    damaged(manifest, b"path,speaker,word\n", "no row below its header")
    damaged(manifest, b"sample,kept\n0,a\n", "no column 'path', 'speaker'")
    damaged(manifest, b"path,speaker,word\nsamples/000000.npy,a,b\n", "do not belong together")
    damaged(private_file(folder), b"path,private,recording\n0,a,b\n", "do not belong together")
    statement = folder / "filtering.json"
    damaged(statement, b"{}", "no statement of filtered features")
    told = json.loads(good[statement])
    for field, value in (("format", 1), ("kind", "heap"), ("features", "2"), ("label", "shoe"), ("sample_rate", 0)):
        damaged(statement, json.dumps({**told, field: value}).encode(), "no statement of filtered features")
    damaged(statement, json.dumps({**told, "statement": {}}).encode(), "states no guarantee")
    private_file(folder).unlink()
    with pytest.raises(CorpusError, match="is missing"):
        read_filtered(folder)


def test_nothing_to_filter_is_refused_and_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no sample"):
        write_filtered(tmp_path / "a", LinearFilter(4, 2), Samples([], [], [], []), keep="word")
    with pytest.raises(RuntimeError):
        write_filtered(tmp_path / "a", LinearFilter(5, 2), samples(), keep="word")
    assert not list(tmp_path.iterdir())
