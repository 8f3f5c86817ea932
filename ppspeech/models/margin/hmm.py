r"""Hidden Markov models trained for a margin (Sha and Saul 2007; Taskar, Guestrin and Koller 2003).

A path s through the states of a bank of word models scores D(x, s) = sum_t [ln a(s_{t-1}, s_t) - z_t' Phi_{s_t} z_t].
Maximum likelihood makes right paths probable; here they must beat all others, by more the more frames differ:

    state level   D(x, y)  >=  D(x, s) + rho H(s, y)      for every path s of every word
    word level    D_y(x)   >=  D_w(x) + rho frames(x)     for every wrong word w

where y is a given path (an alignment of the right word), H counts the frames whose state differs, and D_w is the
soft maximum of the scores of all paths of w. Paths are too many to list: the soft maximum over all of them,
log sum_s exp(D(x, s) + rho H(s, y)), is one forward recursion whose emissions are raised by rho wherever the state
is not y_t (loss-augmented decoding). A violation u costs l_h(u) / frames with the Huber hinge l_h.

All costs of all words, states and frames are one matrix product, linear in Phi. The start is a bank trained by
maximum likelihood; adding the same number to the corner of every Phi changes no decision, so it is chosen to make
all of them positive semidefinite, and `project_` keeps them so.
"""

from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.phi import quadratic_forms, smat, svec
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import by_length
from ppspeech.models.hmm.emissions import GaussianEmission, masked_log_softmax
from ppspeech.models.hmm.forward_backward import LOG_ZERO, log_likelihood
from ppspeech.models.hmm.topology import Topology
from ppspeech.models.hmm.viterbi import viterbi
from ppspeech.models.margin.hinge import huber_hinge
from ppspeech.models.margin.psd import project_psd

Level = Literal["word", "state"]


class LargeMarginHmm(nn.Module):
    """A bank of left-right (or any) models of words whose states are matrices Phi.

    `margin` is rho, what a wrong frame must cost more, and `width` is h of the Huber hinge; both in nats and > 0.
    Raises ModelError for sizes, margin or width that make no sense.
    """

    def __init__(self, topology: Topology, models: int, features: int, margin: float = 1.0, width: float = 1.0) -> None:
        super().__init__()
        if models < 2 or features < 1:
            raise ModelError(f"a margin needs models >= 2 and features >= 1, got {models} and {features}")
        if not margin > 0 or not width > 0:
            raise ModelError(f"margin and width must be > 0, got {margin} and {width}")
        self.topology = topology
        self.margin = margin
        self.width = width
        states, monomials = topology.states, (features + 1) * (features + 2) // 2
        self.vector = nn.Parameter(torch.zeros(models, states, monomials))
        self.initial_logits = nn.Parameter(torch.zeros(models, states))
        self.transition_logits = nn.Parameter(torch.zeros(models, states, states))

    @classmethod
    def from_hmm(cls, bank: HiddenMarkovModel, margin: float = 1.0, width: float = 1.0) -> Self:
        """The model that starts at a bank trained by maximum likelihood, which must have one Gaussian a state."""
        emission = bank.emission
        if not isinstance(emission, GaussianEmission) or emission.components != 1:
            raise ModelError("a large-margin model starts from a bank with one Gaussian a state")
        model = cls(bank.topology, bank.models, emission.features, margin, width)
        with torch.no_grad():
            phi = emission.gaussians.phi()
            # z' Phi z is smallest at the mean; lifting all corners alike lifts the smallest of all to 0
            smallest = (phi[..., -1, -1] - _quadratic_part(phi)).amin()
            phi[..., -1, -1] += (-smallest).clamp_min(0)
            model.vector.copy_(svec(phi))
            model.initial_logits.copy_(bank.initial_logits)
            model.transition_logits.copy_(bank.transition_logits)
        return model

    def phi(self) -> Tensor:
        """The matrices, `(models, states, d + 1, d + 1)`."""
        return smat(self.vector)

    @torch.no_grad()
    def project_(self) -> None:
        """Move every Phi to the nearest positive semidefinite one: after each gradient step."""
        self.vector.copy_(svec(project_psd(self.phi())))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """D_w of utterances `(batch, frames, d)` under every word, `(batch, models)`."""
        return log_likelihood(*self._terms(features, lengths))

    def align(self, features: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """The best path of the right word, `(batch, frames)`: the y of the state level."""
        emissions, transitions, initial, _, final = self._terms(features, lengths)
        rows = torch.arange(len(labels), device=labels.device)
        return viterbi(emissions[rows, :, labels], transitions[labels], initial[labels], lengths, final).states

    def loss(
        self, features: Tensor, lengths: Tensor, labels: Tensor, level: Level = "word", alignment: Tensor | None = None
    ) -> Tensor:
        """Per-utterance margin losses `(batch,)`, for autograd.

        Features are `(batch, frames, d)`, lengths at least 1, labels the right words. `alignment` is the right path
        `(batch, frames)` for the state level; none means `align`.
        """
        if level not in get_args(Level):
            raise ModelError(f"level must be 'word' or 'state', got {level!r}")
        emissions, transitions, initial, lengths, final = self._terms(features, lengths)
        rows = torch.arange(len(labels), device=labels.device)
        if level == "word":
            scores = log_likelihood(emissions, transitions, initial, lengths, final)
            right = scores[rows, labels]
            wrong = labels.unsqueeze(-1) != torch.arange(len(self.vector), device=labels.device)
            rivals = scores.masked_fill(~wrong, -torch.inf).logsumexp(-1) + self.margin * lengths
        else:
            with torch.no_grad():
                path = self.align(features, lengths, labels) if alignment is None else alignment
            own = torch.zeros_like(emissions, dtype=torch.bool)
            times = torch.arange(path.shape[1], device=path.device)
            own[rows.unsqueeze(-1), times, labels.unsqueeze(-1), path] = True
            raised = emissions + self.margin * ~own
            rivals = log_likelihood(raised, transitions, initial, lengths, final).logsumexp(-1)
            right = self._path_score(emissions, transitions, initial, lengths, labels, path)
        return huber_hinge(rivals - right, self.width) / lengths

    def _path_score(
        self, emissions: Tensor, transitions: Tensor, initial: Tensor, lengths: Tensor, labels: Tensor, path: Tensor
    ) -> Tensor:
        """D(x, y) of one path of the right word, `(batch,)`."""
        rows = torch.arange(len(labels), device=labels.device).unsqueeze(-1)
        words, times = labels.unsqueeze(-1), torch.arange(path.shape[1], device=path.device)
        live = times < lengths.unsqueeze(-1)
        frames = torch.where(live, emissions[rows, times, words, path], 0).sum(-1)
        moves = torch.where(live[:, 1:], transitions[words, path[:, :-1], path[:, 1:]], 0).sum(-1)
        return frames + moves + initial[labels, path[:, 0]]

    def emissions(self, features: Tensor) -> Tensor:
        """-z' Phi z, `(batch, frames, models, states)`."""
        costs = quadratic_forms(features, self.vector)
        return -costs

    def log_initial(self) -> Tensor:
        """ln pi, `(models, states)`."""
        return masked_log_softmax(self.initial_logits, self.topology.masks(self.initial_logits)[1])

    def log_transitions(self) -> Tensor:
        """ln A, `(models, states, states)`."""
        return masked_log_softmax(self.transition_logits, self.topology.masks(self.transition_logits)[0])

    def log_final(self) -> Tensor | None:
        """0 where an utterance may end and `LOG_ZERO` elsewhere, `(states,)`; None without a constraint."""
        if all(self.topology.final):
            return None
        return torch.where(self.topology.masks(self.vector)[2], 0.0, LOG_ZERO).to(self.vector)

    def _terms(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """Emission scores `(batch, frames, models, states)` and what else the recursions need."""
        return self.emissions(features), self.log_transitions(), self.log_initial(), lengths, self.log_final()


def train_large_margin(
    model: LargeMarginHmm,
    features: Tensor,
    lengths: Tensor,
    labels: Tensor,
    level: Level = "word",
    epochs: int = 4,
    learning_rate: float = 1e-3,
    batch_frames: int = 3_000,
    seed: int = 0,
) -> tuple[float, ...]:
    """Train on `(utterances, frames, d)` by Adam with a cosine schedule, projecting every Phi on the cone at each step.

    Few epochs are enough, and more overfit: once every training utterance has its margin nothing is left to learn.
    `batch_frames` are the frames of a step, padding included. Returns the mean loss of each epoch.
    """
    if epochs < 1 or not learning_rate > 0:
        raise ModelError(f"need epochs >= 1 and learning_rate > 0, got {epochs} and {learning_rate}")
    if len(lengths) == 0 or lengths.min() < 1:
        raise ModelError("every utterance needs at least one frame, and there must be one")
    batches = list(by_length(features, lengths, labels, batch_frames=batch_frames))
    optimizer = torch.optim.Adam([model.vector, model.transition_logits], lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(batches))
    generator = torch.Generator().manual_seed(seed)
    history = []
    for _ in range(epochs):
        total = model.vector.new_zeros(())
        for index in torch.randperm(len(batches), generator=generator).tolist():
            optimizer.zero_grad()
            some, lasting, named = batches[index]
            losses = model.loss(some, lasting, named, level)
            torch.autograd.backward(losses.mean())
            optimizer.step()
            schedule.step()
            model.project_()
            total += losses.detach().sum()
        history.append(total / len(labels))
    return tuple(torch.stack(history).tolist())


def _quadratic_part(phi: Tensor) -> Tensor:
    """mu' Psi mu of every Phi."""
    psi, psi_mean = phi[..., :-1, :-1], phi[..., :-1, -1]
    part: Tensor = (psi_mean * torch.linalg.solve(psi, psi_mean)).sum(-1)
    return part
