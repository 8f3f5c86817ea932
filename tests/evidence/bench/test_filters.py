"""The benchmark of filters runs the same algorithm on both sides."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import filters


@pytest.fixture
def game(data: Path, monkeypatch: pytest.MonkeyPatch) -> filters._Game:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    return filters._game(150, 2, 3)


def test_both_sides_reach_the_same_phi(game: filters._Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smaller the tolerance of the inner problems the closer: it is one algorithm."""
    monkeypatch.setattr(filters, "TOLERANCE", 1e-8)
    monkeypatch.setattr(filters, "AUXILIARY", 2000)
    ours, peer = filters._Ours(game), filters._Explicit(game, jacobians=False)
    first, second = ours.run(1), ours.run(2)
    assert first == pytest.approx(peer.run(1), abs=1e-5)
    assert second == pytest.approx(peer.run(2), abs=1e-5)
    assert second < first


def test_the_explicit_derivatives_are_right(game: filters._Game) -> None:
    peer = filters._Explicit(game)
    generator = np.random.default_rng(0)
    v = generator.normal(size=(3, 3))
    labels = game.subject.numpy()
    u = peer.start.flatten()
    g = peer._features(u)
    task = filters.ClassTask(game.subject, 3, filters.RIDGE)
    leaf, weight = torch.tensor(v, requires_grad=True), torch.tensor(peer.start, requires_grad=True)
    loss = task.loss(leaf, game.x @ weight.mT)
    value, slope = filters._loss(v, g, labels)
    by_u = torch.autograd.grad(loss, weight, create_graph=True)[0]
    assert value == pytest.approx(float(loss.detach()))
    np.testing.assert_allclose(peer._by_u(v, g, labels), by_u.detach().flatten().numpy(), atol=1e-12)
    q = torch.tensor(generator.normal(size=peer.start.shape))
    mixed = torch.autograd.grad((by_u * q).sum(), leaf, retain_graph=True)[0].numpy()
    flat_q = q.flatten().numpy()
    np.testing.assert_allclose(peer._mixed(v, g, labels).T @ flat_q, mixed.flatten(), atol=1e-9)
    np.testing.assert_allclose(filters._mixed_product(v, g, peer._features(flat_q), labels), mixed, atol=1e-9)
    np.testing.assert_allclose(slope, torch.autograd.grad(loss, leaf)[0].numpy(), atol=1e-12)


def small_games(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    real = filters._game
    monkeypatch.setattr(filters, "_game", lambda rows, _, subjects: real(rows // 4, 2, min(subjects, 4)))


def test_figures_are_complete(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_games(data, monkeypatch)
    threads = torch.get_num_threads()
    figures = {figure.metric: figure for figure in filters.run(quick=True)}
    phi = figures["filters.kiwiel.phi"]
    assert phi.value == pytest.approx(phi.peer_value, abs=1e-3)
    assert figures["filters.kiwiel.speedup_vs_numpy"].unit == "x"
    assert figures["filters.kiwiel.s"].ratio == pytest.approx(figures["filters.kiwiel.speedup_vs_numpy"].value)
    assert figures["filters.kiwiel.without_jacobians_s"].peer_value is not None
    for what, first, last in (("samples", 300, 1200), ("dimension", 10, 50), ("subjects", 5, 30)):
        assert {f"filters.kiwiel.by_{what}.{size}_s" for size in (first, last)} <= set(figures)
    assert torch.get_num_threads() == threads


def test_a_peer_that_ends_elsewhere_is_no_peer(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_games(data, monkeypatch)
    monkeypatch.setattr(filters._Explicit, "run", lambda *_: 1.0)
    with pytest.raises(PpspeechError, match="no figure can be trusted"):
        filters.run(quick=True)
