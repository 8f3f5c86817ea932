import importlib
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans as SklearnKMeans

from ppspeech.errors import ModelError
from ppspeech.models.gaussian import kmeans

module = importlib.import_module("ppspeech.models.gaussian.kmeans")  # its door offers the function


def blobs(frames: int = 300, features: int = 2, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    middle = 10 * torch.randn(5, features, generator=generator, dtype=torch.float64)
    which = torch.randint(5, (frames,), generator=generator)
    return middle[which] + torch.randn(frames, features, generator=generator, dtype=torch.float64)


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_lloyd_steps_are_scikit_learns_from_the_same_seeds() -> None:
    x = blobs()
    seeds = kmeans(x, 5, iterations=0, generator=seeded())
    ours = kmeans(x, 5, iterations=30, generator=seeded())
    theirs = SklearnKMeans(5, init=seeds.centers[0].numpy(), n_init=1, max_iter=30, tol=0).fit(x.numpy())
    np.testing.assert_allclose(ours.centers[0].numpy(), theirs.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(ours.labels[0].numpy(), theirs.labels_)
    assert float(ours.inertia[0]) == pytest.approx(theirs.inertia_)


def test_seeds_are_frames_and_restarts_differ() -> None:
    x = blobs()
    seeds = kmeans(x, 5, restarts=3, iterations=0, generator=seeded()).centers
    assert seeds.shape == (3, 5, 2)
    assert (torch.cdist(seeds.reshape(-1, 2), x).amin(-1) < 1e-9).all()
    assert not torch.allclose(seeds[0], seeds[1])


def test_seeding_spreads_out() -> None:
    """k-means++ seeds distant clusters once each; uniform seeding would manage it in 4 % of the runs."""
    x = torch.arange(5.0).mul(1e6).repeat_interleave(50).unsqueeze(-1) + torch.rand(250, 1, generator=seeded())
    centers = kmeans(x, 5, restarts=20, iterations=0, generator=seeded()).centers
    assert (centers.squeeze(-1).div(1e6).round().sort(-1).values == torch.arange(5.0)).all()


def test_inertia_never_rises_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = blobs(500)
    inertia = [kmeans(x, 6, restarts=4, iterations=n, generator=seeded()).inertia for n in range(6)]
    assert all((after <= before + 1e-9).all() for before, after in pairwise(inertia))
    whole = kmeans(x, 6, restarts=2, generator=seeded())
    monkeypatch.setattr(module, "BLOCK", 7)
    torch.testing.assert_close(kmeans(x, 6, restarts=2, generator=seeded()).centers, whole.centers)


def test_weights_count_as_repetitions() -> None:
    x = blobs(60)
    weights = torch.randint(0, 3, (60,), generator=seeded())
    x_bad = torch.where(weights.unsqueeze(-1) > 0, x, torch.nan)
    start = kmeans(x_bad, 3, iterations=40, weights=weights, generator=seeded())
    repeated = x.repeat_interleave(weights, dim=0)
    theirs = SklearnKMeans(3, init=start.centers[0].numpy(), n_init=1, max_iter=1).fit(repeated.numpy())
    np.testing.assert_allclose(start.centers[0].numpy(), theirs.cluster_centers_, rtol=1e-9)
    assert float(start.inertia[0]) == pytest.approx(theirs.inertia_)


def test_more_clusters_than_frames_and_identical_frames() -> None:
    few = kmeans(blobs(3), 7, generator=seeded())
    assert few.centers.isfinite().all()
    assert float(few.inertia[0]) == pytest.approx(0, abs=1e-9)
    same = kmeans(torch.full((10, 2), 3.0), 4, restarts=2, generator=seeded())
    torch.testing.assert_close(same.centers, torch.full((2, 4, 2), 3.0))
    assert not same.inertia.any()


def test_one_cluster_is_the_mean() -> None:
    x = blobs(50)
    torch.testing.assert_close(kmeans(x, 1, generator=seeded()).centers[0, 0], x.mean(0))


def test_float32_far_from_zero() -> None:
    x = blobs(200).float() + 3000
    found = kmeans(x, 5, restarts=5, iterations=20, generator=seeded())
    exact = kmeans(x.double(), 5, restarts=5, iterations=20, generator=seeded())
    assert float(found.inertia.min()) == pytest.approx(float(exact.inertia.min()), rel=1e-3)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (torch.zeros(4), {}, "shape"),
        (torch.zeros(4, 2, dtype=torch.long), {}, "floating point"),
        (torch.zeros(0, 2), {}, "no frames"),
        (torch.tensor([[0.0], [torch.nan]]), {}, "1 of 2 frames are not finite"),
        (torch.zeros(4, 2), {"clusters": 0}, "clusters >= 1"),
        (torch.zeros(4, 2), {"restarts": 0}, "restarts >= 1"),
        (torch.zeros(4, 2), {"iterations": -1}, "iterations >= 0"),
        (torch.zeros(4, 2), {"weights": torch.zeros(4)}, "at least one > 0"),
        (torch.zeros(4, 2), {"weights": -torch.ones(4)}, ">= 0"),
        (torch.zeros(4, 2), {"weights": torch.ones(3)}, "do not fit"),
    ],
)
def test_bad_input_is_refused(x: torch.Tensor, options: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        kmeans(x, **{"clusters": 2, **options})  # type: ignore[arg-type]
