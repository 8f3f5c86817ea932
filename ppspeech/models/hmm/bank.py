"""A bank of hidden Markov models as one module: words in, scores out."""

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.hmm import forward_backward
from ppspeech.models.hmm.emissions import Emission, masked_log_softmax
from ppspeech.models.hmm.forward_backward import LOG_ZERO, Posteriors
from ppspeech.models.hmm.topology import Topology
from ppspeech.models.hmm.viterbi import BestPath, viterbi

BANDED = 3  # up to this many diagonals of the transition matrix, the recursions follow them; beyond, they are dense


class HiddenMarkovModel(nn.Module):
    """Models that share a topology and a kind of emission, such as ten words of five states.

    Transitions are logits masked to the topology: what it forbids has no gradient, is touched by no M-step and can
    never become possible. Untrained, everything allowed is equally probable. There are no buffers. Raises ModelError if
    the topology and the emission have different numbers of states.

    >>> from ppspeech.models.hmm.emissions import GaussianEmission
    >>> from ppspeech.models.hmm.topology import left_right
    >>> bank = HiddenMarkovModel(left_right(5), GaussianEmission(10, 5, features=39))
    >>> bank(torch.zeros(2, 40, 39), torch.tensor([40, 31])).shape
    torch.Size([2, 10])
    """

    def __init__(self, topology: Topology, emission: Emission) -> None:
        super().__init__()
        if topology.states != emission.states:
            raise ModelError(
                f"the topology has {topology.states} states and the emission {emission.states}: make them equal"
            )
        self.topology = topology
        self.emission = emission
        dtype = next(emission.parameters()).dtype
        self.initial_logits = nn.Parameter(torch.zeros(self.models, self.states, dtype=dtype))
        self.transition_logits = nn.Parameter(torch.zeros(self.models, self.states, self.states, dtype=dtype))

    @property
    def models(self) -> int:
        """Size of the bank."""
        return self.emission.models

    @property
    def states(self) -> int:
        """States of every model."""
        return self.topology.states

    @property
    def band(self) -> tuple[int, ...] | None:
        """The diagonals the recursions follow, or None for the dense form."""
        offsets = self.topology.offsets
        return offsets if len(offsets) <= BANDED else None

    def extra_repr(self) -> str:
        """Sizes, for `print(module)`."""
        return f"models={self.models}, states={self.states}"

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
        allowed = self.topology.masks(self.initial_logits)[2]
        return torch.where(allowed, self.initial_logits.new_zeros(()), LOG_ZERO)

    def forward(self, features: Tensor, lengths: Tensor, models: Tensor | int | None = None) -> Tensor:
        """ln p of every utterance under every model, `(batch, models)`, or under the given `models`, `(batch,)`.

        It is below `LOG_ZERO / 2` where no path exists, as for an utterance shorter than the shortest path to a
        required final state.

        Args:
            features: `(batch, frames, d)`, padded with anything finite; for symbols, integers `(batch, frames)`.
            lengths: frames in use, `(batch,)`; an empty utterance scores 0 under every model.
            models: score under this model only: one for all utterances, or one for each, `(batch,)`.
        """
        return forward_backward.log_likelihood(*self._terms(features, lengths, models), band=self.band)

    def posteriors(self, features: Tensor, lengths: Tensor, models: Tensor | int | None = None) -> Posteriors:
        """State and transition posteriors; arguments as in `forward`, `*lead` is `models` or nothing."""
        return forward_backward.posteriors(*self._terms(features, lengths, models), band=self.band)

    def best_path(self, features: Tensor, lengths: Tensor, models: Tensor | int | None = None) -> BestPath:
        """The Viterbi score and state sequence; arguments as in `forward`."""
        return viterbi(*self._terms(features, lengths, models))

    def _terms(
        self, features: Tensor, lengths: Tensor, models: Tensor | int | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        transitions, initial = self.log_transitions(), self.log_initial()
        if models is not None:
            transitions, initial = transitions[models], initial[models]
        emissions = self.emission.log_likelihood(features, models)
        return emissions, transitions, initial, lengths, self.log_final()
