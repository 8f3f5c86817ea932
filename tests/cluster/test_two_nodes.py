"""On two nodes: what is spread is what one process makes, also when workers and nodes die in the middle of it."""

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import ppspeech.cluster.parts
import ppspeech.cluster.workers
import ppspeech.data.features
from ppspeech.audio import MfccConfig
from ppspeech.bundle import Recognizer
from ppspeech.cli import app
from ppspeech.cli.recognize import _heard
from ppspeech.cluster import HERE, Pool, in_order, pool, ray_cluster, shards, spread_over, sweep
from ppspeech.data import Corpus, Samples, SyntheticCorpus, load_corpus
from ppspeech.errors import AudioError, ClusterError
from ppspeech.filters import LinearFilter, write_filtered
from ppspeech.filters.attack import judge_samples
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from tests.cluster.conftest import Nodes
from tests.cluster.parts import Part, always_dies, dies_once, picky, square
from tests.service.voices import LIVE, released

FACTORIES = [partial(Part, factor) for factor in (2, 3, 5)]
VALUES = np.arange(4)
EXPECTED = [(VALUES * factor).tolist() for factor in (2, 3, 5)]


@pytest.fixture(scope="module")
def cluster(nodes: Nodes) -> Iterator[Nodes]:
    """Joined once: commands inside use the connection that is there."""
    with ray_cluster(nodes.address):
        yield nodes


@pytest.fixture(scope="module")
def workers(cluster: Nodes) -> Iterator[Pool]:
    with pool(cluster.address) as found:
        yield found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return SyntheticCorpus(words=("go", "stop"), speakers=4, takes=8).build()


def test_every_item_is_done_once_and_dead_workers_are_replaced(
    workers: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    many = list(range(40))  # more than wait at a time
    assert sorted(workers.each(square, many, "Squaring")) == [(each, each * each) for each in many]
    assert in_order(workers, partial(dies_once, tmp_path), [1, 2, 3]) == [1, 4, 9]
    with pytest.raises(AudioError, match=r"bad\.wav: no sound"):
        in_order(workers, picky, ["good.wav", "bad.wav"])
    with pytest.raises(ZeroDivisionError):
        in_order(workers, (1).__truediv__, [0])
    monkeypatch.setattr(ppspeech.cluster.workers, "RETRIES", 1)
    with pytest.raises(ClusterError, match="7: its workers died 2 times"):
        in_order(workers, always_dies, [7])
    assert in_order(workers, square, []) == []
    assert not capsys.readouterr().out  # which is for answers


def test_sweeps_are_spread_where_that_was_asked_for(cluster: Nodes) -> None:
    mine = os.getpid()
    assert sweep(Part.whose, [0, 1]) == [mine, mine]
    with spread_over(cluster.address):
        assert mine not in sweep(Part.whose, [0, 1])
    assert sweep(Part.whose, [0]) == [mine]


@pytest.mark.slow
def test_a_node_killed_in_the_middle_of_features(
    cluster: Nodes, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folders are alike to the byte; so is what a command writes that was stopped and asked again."""
    recordings = _folder(corpus, tmp_path / "recordings")
    whole = _features(recordings, tmp_path / "one", monkeypatch)
    with cluster.second_replaced(), monkeypatch.context() as patch:
        writes = _at_write(patch, 20, cluster.kill_second)
        assert _features(recordings, tmp_path / "two", patch, "--ray", cluster.address) == whole
        assert len(writes) == len(corpus)
    with monkeypatch.context() as patch:
        _at_write(patch, 40, _stop)
        _features(recordings, tmp_path / "three", patch, "--ray", cluster.address, code=130)
        assert not (tmp_path / "three").exists()
    with monkeypatch.context() as patch:
        writes = _at_write(patch, -1, _stop)
        assert _features(recordings, tmp_path / "three", patch, "--ray", cluster.address) == whole
        assert len(writes) == len(corpus) - 39
    assert load_corpus(tmp_path / "two").words == ("go", "stop")


@pytest.mark.slow
def test_filters_recognizers_and_attackers_say_the_same(
    workers: Pool, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ppspeech.filters.apply.uniform_residues", np.arange)  # the order is drawn, each time anew
    generator = torch.Generator().manual_seed(0)
    people, words = [str(place % 4) for place in range(80)], [str(place // 4 % 2) for place in range(80)]
    vectors = [torch.randn(6, generator=generator) + int(who) for who in people]
    samples = Samples(vectors, words, people, [str(place) for place in range(80)])
    filters, names = LinearFilter(6, 3), ("logistic", "neighbors", "plda")
    for name, each in (("one", HERE), ("two", workers)):
        write_filtered(tmp_path / name, filters, samples, keep="word", workers=each)
    assert _files(tmp_path / "one") == _files(tmp_path / "two")
    test = samples.hold_out(0.5, 0)
    found = [judge_samples(samples, test, names, clips=(1, 3), workers=each) for each in (HERE, workers)]
    assert repr(found[0]) == repr(found[1])
    model = HiddenMarkovModel(left_right(3), GaussianEmission(2, 3, 39, covariance="diagonal"))
    torch.nn.init.normal_(model.emission.gaussians.mean, generator=generator)
    recognizer = Recognizer(("go", "stop"), MfccConfig(), model, 4.0, None, None)
    heard = [_heard(recognizer, corpus, {}, each) for each in (HERE, workers)]
    assert heard[0] == heard[1]
    assert len(heard[0]) == len(corpus)


@pytest.mark.slow  # every attack starts a server of its own
def test_attacks_have_servers_of_their_own(cluster: Nodes, tmp_path: Path) -> None:
    released(tmp_path / "live", mfcc=LIVE, seed=1)
    chosen = ["--quick", "--json", "--only", "small_order", "--only", "key_by_probes"]
    said = [
        CliRunner().invoke(app, ["attack", str(tmp_path / "live"), *chosen, *ray]).output
        for ray in ([], ["--ray", cluster.address])
    ]
    assert "active.attack.small_order.gained" in said[0]
    assert said[0] == said[1]


def test_a_shard_that_dies_changes_nothing(cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is killed, then a node in the middle of an answer; forked children ask as their parent does."""
    with shards(FACTORIES, ray=cluster.address) as group:
        assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED
        with pytest.raises(AudioError, match="too quiet"):
            group.ask("refuse", VALUES)
        victim = cluster.second.encode()
        elsewhere = next(shard for shard, node in enumerate(group.ask("node")) if node != victim)
        os.kill(int(group.ask("process")[elsewhere]), signal.SIGKILL)  # it is built again on any node
        assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED
        assert _asked_by_a_child(group) == EXPECTED
        assert victim in group.ask("node")
        os.mkfifo(tmp_path / "asked")
        killer = threading.Thread(target=_killed_when_asked, args=(cluster, tmp_path / "asked"))
        with cluster.second_replaced():
            killer.start()
            answers = group.ask("hangs_on", VALUES, victim, os.fsencode(tmp_path / "asked"))
            killer.join()
            assert [each.tolist() for each in answers] == EXPECTED
            assert victim not in group.ask("node")
        monkeypatch.setattr(ppspeech.cluster.parts, "TRIES", 2)
        with pytest.raises(ClusterError, match="shard 0 died 2 times when asked for die"):
            group.ask("die")


def test_a_shard_that_dies_is_told_again_what_it_was_told(cluster: Nodes) -> None:
    with shards(FACTORIES, ray=cluster.address) as group:
        group.tell("put", VALUES)
        with pytest.raises(AudioError, match="less than nothing"):
            group.tell("put", -VALUES)
        os.kill(int(group.ask("process")[0]), signal.SIGKILL)
        assert [each.tolist() for each in group.ask("kept_times")] == EXPECTED


def _killed_when_asked(nodes: Nodes, fifo: Path) -> None:
    fifo.read_bytes()  # until a shard of that node has opened and closed it
    nodes.kill_second()


def _asked_by_a_child(group: object) -> list[list[int]]:
    """What a forked child, as servers have one for each client, is told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = b"nothing"
        try:
            told = np.stack(group.ask("times", VALUES)).astype(np.int64).tobytes()  # type: ignore[attr-defined]
        finally:
            os.write(writing, told)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return np.frombuffer(told, np.int64).reshape(3, 4).tolist()


def _folder(corpus: Corpus, folder: Path) -> Path:
    """A corpus of one's own."""
    folder.mkdir()
    rows = ["path,speaker,word"]
    for place, utterance in enumerate(corpus):
        (folder / f"{place}.wav").symlink_to(utterance.path)
        rows.append(f"{place}.wav,{utterance.speaker},{utterance.word}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    return folder


def _features(recordings: Path, out: Path, patch: pytest.MonkeyPatch, *words: str, code: int = 0) -> dict[str, bytes]:
    """What `ppspeech features` writes, beside a cache of its own."""
    patch.setenv("PPSPEECH_CACHE", str(out.with_suffix(".cache")))
    result = CliRunner().invoke(app, ["features", str(recordings), "--out", str(out), *words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return _files(out)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _at_write(patch: pytest.MonkeyPatch, number: int, then: Any) -> list[Path]:
    """All that is written into caches of features, in a list that grows; `then` happens before one of them."""
    written: list[Path] = []
    write = ppspeech.data.features.atomic_write

    def counted(path: Path, **how: Any) -> Any:
        written.append(path)
        if len(written) == number:
            then()
        return write(path, **how)

    patch.setattr(ppspeech.data.features, "atomic_write", counted)
    return written


def _stop() -> None:
    raise KeyboardInterrupt
