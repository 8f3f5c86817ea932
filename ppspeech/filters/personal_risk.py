"""How well each contributor is told from the others: the weighted binary risk of Hamm 2015, section 5.4."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters.attack.attackers import VECTOR_ATTACKERS, Attacker
from ppspeech.filters.modules import Scaling


def weighted_risks(
    train: Tensor, train_owners: Tensor, test: Tensor, test_owners: Tensor, attacker: str = "logistic"
) -> Tensor:
    """How often an attacker is right about whether a sample is a contributor's, both answers weighed alike; for each.

    The attacker is trained anew for each contributor on everyone's filtered training samples. For the weights of eq. 7
    it is shown that contributor's samples as often as it takes for both sides to be as many. Chance is 0.5. Samples are
    `(n, d)`, each by its owner's filter, owners `(n,)` 0 to S - 1; those of the test are from other recordings. The
    attacker is `logistic` as in the paper, or another on vectors. Returns `(S,)`. Raises ModelError for an unknown
    attacker, or a contributor without samples in either part.
    """
    learn = VECTOR_ATTACKERS[attacker]
    scaling = Scaling(train)
    known, asked = scaling(train), scaling(test)
    found = []
    for owner in range(int(train_owners.max()) + 1):
        own, truth = train_owners == owner, test_owners == owner
        if not own.any() or not truth.any():
            raise ModelError(f"contributor {owner} has no samples in one of the parts")
        guess = _guess(learn, known[own], known[~own], asked)
        found.append((guess[truth].double().mean() + (~guess[~truth]).double().mean()) / 2)
    return torch.stack(found)


def worst_risks(
    train: Tensor, train_owners: Tensor, test: Tensor, test_owners: Tensor, attackers: Sequence[str]
) -> tuple[Tensor, str]:
    """The risks of the attacker that does best on average, `(S,)`, and its name."""
    risks = {name: weighted_risks(train, train_owners, test, test_owners, name) for name in attackers}
    worst = max(risks, key=lambda name: float(risks[name].mean()))
    return risks[worst], worst


def _guess(learn: Attacker[Tensor], own: Tensor, others: Tensor, asked: Tensor) -> Tensor:
    """Whether a newly trained attacker takes each asked sample for one's own, bool `(m,)`."""
    times = -(-len(others) // len(own))
    shown = torch.cat([own.repeat(times, 1)[: max(len(own), len(others))], others])
    labels = (torch.arange(len(shown), device=shown.device) < len(shown) - len(others)).long()
    scores = learn(shown, labels, 2, 0)(asked)
    return scores[:, 1] > scores[:, 0]
