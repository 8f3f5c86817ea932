"""Attackers who know the filter: layers that lose nothing are undone, the rest is guessed from public speech."""

import pytest
import torch
from torch import Tensor, nn

from ppspeech.audio import Frames
from ppspeech.errors import ModelError
from ppspeech.filters import LinearFilter, Mlp, NoisyFilter, Scaling, SigmoidNetwork, Standardized
from ppspeech.filters.attack import KnownFilter, Layered, attack
from ppspeech.filters.attack.known_filter import inverse, ranked, reconstructor, seen_as
from tests.filters.crowds import crowd


def made(layers: nn.Module) -> nn.Module:
    """A filter with weights of a fixed draw."""
    generator = torch.Generator().manual_seed(0)
    for weight in layers.parameters():
        weight.data = torch.randn(weight.shape, generator=generator, dtype=torch.float64) / weight.shape[-1] ** 0.5
    return layers


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


class Steps(nn.Module):
    """A filter of another make, that says what it is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = made(nn.Linear(6, 4)), nn.Tanh()

    def steps(self) -> list[nn.Module]:
        return [self.first, self.second]

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.second(self.first(x))
        return made


@pytest.mark.parametrize(
    "layers",
    [
        nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()),
        nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 5), nn.Sigmoid()),
        nn.Sequential(nn.Linear(3, 3, bias=False), nn.LeakyReLU(0.1), nn.Linear(3, 4), nn.Softplus(2.0)),
        nn.Sequential(nn.Identity(), LinearFilter(3, 3), nn.Sigmoid()),
        SigmoidNetwork(3, 3, 3),
        Standardized(SigmoidNetwork(3, 3, 4), Scaling(random(20, 3) * 3 + 2)),
        NoisyFilter(SigmoidNetwork(3, 3, 3), None),
    ],
    ids=["square", "tall", "leaky", "linear", "network", "standardized", "noisy"],
)
def test_layers_that_lose_nothing_are_undone(layers: nn.Module) -> None:
    x = random(50, 3)
    undo = inverse(made(layers).double())
    assert undo is not None
    with torch.no_grad():
        torch.testing.assert_close(undo(layers(x)), x, atol=1e-6, rtol=1e-6)


def test_a_layer_that_loses_something_ends_it() -> None:
    """A network of wide layers is undone up to the sums that its last layer took."""
    network = made(SigmoidNetwork(8, 5, 3))
    assert isinstance(network, SigmoidNetwork)
    undo = inverse(network)
    assert undo is not None
    x = random(20, 8)
    with torch.no_grad():
        sums = network.second(torch.sigmoid(network.first(x)))
        torch.testing.assert_close(undo(network(x)), sums, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "module",
    [
        LinearFilter(5, 3),
        LinearFilter(3, 3),
        Mlp(5, [4], 3),
        nn.Sequential(nn.Linear(3, 3), nn.ReLU()),
        nn.Conv1d(2, 2, 1),
    ],
    ids=["projection", "square", "rectified", "relu", "unknown"],
)
def test_where_nothing_bends_or_all_is_lost_there_is_nothing_to_undo(module: nn.Module) -> None:
    assert inverse(module) is None


def test_a_layer_without_full_rank_is_not_undone() -> None:
    layer = nn.Linear(3, 3).double()
    layer.weight.data[2] = layer.weight.data[0] + layer.weight.data[1]
    assert inverse(nn.Sequential(nn.Sigmoid(), layer)) is None


def test_a_filter_of_another_make_says_what_it_is_made_of() -> None:
    module = Steps()
    assert isinstance(module, Layered)
    undo = inverse(module)
    assert undo is not None
    x = random(10, 6)
    with torch.no_grad():
        torch.testing.assert_close(undo(module(x)), module.first(x), atol=1e-6, rtol=1e-6)


def test_saturated_numbers_are_undone_to_finite_ones() -> None:
    undo = inverse(nn.Sigmoid())
    assert undo is not None
    back = undo(torch.tensor([[0.0, 1.0, 0.5]]))
    assert back.isfinite().all()
    assert float(back[0, 0]) == pytest.approx(-13.8, abs=0.1)
    assert float(back[0, 2]) == pytest.approx(0.0, abs=1e-6)


def test_who_hides_behind_an_invertible_network_is_named_once_it_is_known() -> None:
    network = SigmoidNetwork(6, 6, 6).double()
    with torch.no_grad():  # steep: what people differ in is where the sigmoids are flat
        network.first.weight.copy_(torch.linalg.qr(random(6, 6)).Q * 1.2)
        network.second.weight.copy_(torch.linalg.qr(random(6, 6).flip(0)).Q * 8)
    x, whose, said = crowd(person=0.7, manner=0.7)
    asked, owners, heard = crowd(person=0.7, manner=0.7, seed=1, takes=8)
    with torch.no_grad():
        train, test = network(x.double()), network(asked.double())
    names = ["plda", "inverted.plda"]
    report = attack(train, whose, test, owners, names, words=(said, heard), known=KnownFilter(network), clips=(1, 10))
    plain = attack(x, whose, asked, owners, ["plda"], words=(said, heard), clips=(1, 10))
    assert report["inverted.plda"].accuracy > report["plda"].accuracy + 0.05
    assert report["inverted.plda"].accuracy == pytest.approx(plain["plda"].accuracy, abs=0.03)
    assert report.worst_at(10).attacker == "inverted.plda"


def test_public_speech_tells_what_the_filter_lost() -> None:
    """Six numbers that are three in truth; one of a rectified pair is enough to guess the others."""
    mix = random(3, 6)
    x = torch.cat([random(600, 3), random(600, 3).flip(0)]) @ mix
    module = made(Mlp(6, [12], 4)).double()
    guess = reconstructor(module, x[:600], seed=0)
    with torch.no_grad():
        back = guess(module(x[600:]))
    wanted = (x[600:] - x[:600].mean(0)) / x[:600].std(0)
    assert float((back - wanted).square().mean()) < 0.3
    report = attack(
        *(module(x[:300]).detach(), torch.arange(300) % 2, module(x[300:600]).detach(), torch.arange(300) % 2),
        ["reconstructed.lda"], known=KnownFilter(module, x[600:]), clips=(1,),
    )  # fmt: skip
    assert report.worst.accuracy < 0.66  # nobody is there: chance 0.5, five deviations


def test_ranks_undo_what_only_rises() -> None:
    x, whose, said = crowd(person=0.7)
    asked, owners, heard = crowd(person=0.7, seed=1, takes=8)
    bent = torch.sigmoid(x.double()), torch.sigmoid(asked.double())
    plain = attack(x.double(), whose, asked.double(), owners, ["ranked.plda"], words=(said, heard))
    assert attack(bent[0], whose, bent[1], owners, ["ranked.plda"], words=(said, heard)) == plain
    scores = ranked(x)(x)
    assert float(scores.mean()) == pytest.approx(0, abs=1e-2)
    assert float(scores.std()) == pytest.approx(1, abs=0.05)


def test_frames_are_undone_frame_by_frame_and_padding_stays_0() -> None:
    frames = Frames(torch.rand(4, 5, 2), torch.tensor([5, 2, 3, 1]))
    undo = inverse(nn.Sigmoid())
    assert undo is not None
    seen = seen_as(undo, frames)
    assert isinstance(seen, Frames)
    assert not seen.features[1, 2:].any()
    torch.testing.assert_close(seen.features[0], torch.logit(frames.features[0].double()))


@pytest.mark.parametrize(
    ("known", "names", "message"),
    [
        (KnownFilter(SigmoidNetwork(4, 3, 3)), ["inverted.lda"], "do not come from that filter"),
        (KnownFilter(LinearFilter(4, 6)), ["inverted.lda"], "called .*inverted"),
        (KnownFilter(LinearFilter(4, 6), torch.zeros(1, 4)), ["reconstructed.lda"], "public samples"),
        (None, ["inverted.lda"], "called .*inverted"),
    ],
)
def test_what_does_not_fit_is_refused(known: KnownFilter | None, names: list[str], message: str) -> None:
    x, whose, _ = crowd(person=1.0, takes=4)
    with pytest.raises(ModelError, match=message):
        attack(x, whose, x, whose, names, known=known)
