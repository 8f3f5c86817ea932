"""Projections, perturbed records, a kernel and online directions: experiments on made-up data, and their targets."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.evidence.experiments import data_perturbation, jl, kernel, online_pca
from ppspeech.evidence.published.kernel import PublishedKernelNoise, rows_read


def rows(count: int, features: int, classes: int, seed: int, spread: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % classes
    centers = torch.nn.functional.normalize(torch.eye(classes, features).double() - 0.3, dim=1) * 0.7
    return centers[y] + spread * torch.randn(count, features, generator=generator).double(), y


def task(classes: int, seed: int = 0) -> kernel.Task:
    parts = (*rows(600, 4, classes, seed, 0.45), *rows(200, 4, classes, seed + 1, 0.45))
    return kernel.Task(*parts, width=0.7, pairs=12, constant=0.1)


def test_projections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jl, "spoken_rows", lambda: (rows(300, 12, 3, 0)[0], torch.arange(300) % 10))
    figures = {f.metric: f for r, e in jl.TABLE for f in jl.floors(r, e)}
    assert figures["jl.covariance.r100.eps1.w2"].value == pytest.approx(35.54, abs=0.01)
    assert figures["jl.graph.r100.eps1.w"].value == pytest.approx(71.08, abs=0.01)
    assert figures["jl.graph.r100.eps1.w"].ratio > 30  # type: ignore[operator]
    spoken = {f.metric: f for f in jl._speech(3, tmp_path / "jl.png")}
    assert spoken["jl.speech.r1000.least.error"].peer == "Analyze Gauss"
    assert (tmp_path / "jl.png").read_bytes().startswith(b"\x89PNG")
    weights, circle = jl.calls(60)
    assert torch.equal(weights, weights.mT)
    assert len(circle.unique()) == jl.CIRCLES


def test_perturbed_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = data_perturbation.Rows(*rows(6000, 3, 2, 0), *rows(500, 3, 2, 1))
    monkeypatch.setattr(data_perturbation, "_adult", lambda: made)
    monkeypatch.setattr(data_perturbation, "spoken", lambda: task(3))
    monkeypatch.setattr(data_perturbation, "THEORY_DRAWS", 20)
    figures = {f.metric: f for f in data_perturbation.run(quick=True, folder=tmp_path)}
    local = figures["local.adult.eps4.accuracy"]
    assert local.peer_value is not None
    assert abs(local.value - local.peer_value) < 0.03
    assert figures["local.adult.central.eps4.accuracy"].value > 0.95
    assert (tmp_path / "data_perturbation.png").read_bytes().startswith(b"\x89PNG")


def test_no_row_of_six_numbers_is_longer_than_1() -> None:
    from tests.evidence.experiments.test_adult_central import made_up

    coded = data_perturbation.six_numbers(made_up(500, 0)[0])
    assert coded.shape == (500, 6)
    assert float(coded.norm(dim=1).max()) <= 1 + 1e-12


def test_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_marks", lambda seed: task(2, seed))
    monkeypatch.setattr(kernel, "spoken", lambda: task(3))
    figures = {f.metric: f for f in kernel.run(quick=True, folder=tmp_path)}
    assert figures["kernel.bcw.nonprivate.error"].value < 0.3
    assert figures["kernel.bcw.eps1.error"].value < 0.45
    assert figures["kernel.words.eps1.error"].peer == "linear"
    assert figures["kernel.dual.rows_read"].value > 0
    assert (tmp_path / "kernel.png").exists()


def test_a_dual_with_noise_in_its_kernel_is_a_list_of_people() -> None:
    x, y = rows(80, 3, 2, 0)
    dual = PublishedKernelNoise(sigma=1.0, width=0.5).release((x.numpy(), y.numpy())).value
    read = rows_read(dual, x.numpy())
    assert read.sum() == len(dual.rows) > 20
    assert not rows_read(dual, rows(80, 3, 2, 5)[0].numpy()).any()
    assert np.isfinite(dual.scores(x.numpy(), 0.5)).all()
    (report,) = PublishedKernelNoise.audit(1)
    assert report.verdict == "violated"


def test_online_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.nn.functional.pad(rows(60, 6, 5, 0)[0], (0, 2))
    monkeypatch.setattr(online_pca, "spoken_rows", lambda: (x, None))
    figures = {f.metric: f.value for f in online_pca.run(quick=True, folder=tmp_path)}
    assert figures["online_pca.without_privacy.regret"] < min(0.1, figures["online_pca.eps16.regret"])
    space = online_pca.regret(x, online_pca.plain_leaders(x), online_pca.best_losses(x))
    assert space.shape == (60,)
    assert (tmp_path / "online_pca.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_targets(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    found = {f.metric: f for f in [*kernel.run(False, tmp_path), *data_perturbation.run(False, tmp_path)]}
    assert found["kernel.bcw.eps1.error"].value <= found["kernel.bcw.eps1.error"].peer_value  # type: ignore[operator]
    words = found["kernel.words.eps1.error"]
    assert words.value <= words.peer_value + 0.01  # type: ignore[operator]
    local = found["local.adult.eps4.accuracy"]
    assert abs(local.value - local.peer_value) < 0.03  # type: ignore[operator]
