"""Filters that let one of K codes through: at most log2 K bits of a sample, whatever the layers before them know.

A continuous filter keeps its task and, in the same numbers, a voice: ten clips together name it. A filter that names
the task's class and nothing else has nothing left to add up but its mistakes. More codes than classes buy nothing that
classes need, and tell more to whoever counts them (`reproduce minimax-audiomnist` draws the curve). Proposition 4.12 in
docs/theory/filters.md.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.errors import ModelError
from ppspeech.filters.modules import Mlp, Scaling, Standardized, check_sizes
from ppspeech.models.gaussian import kmeans

HIDDEN = 128
BATCH, RATE, DECAY, SMOOTHING = 128, 3e-3, 0.05, 0.1
BLUR = 0.3  # of the standardized inputs in training: what a class is, not what a recording is


class CodeFilter(nn.Module):
    """A network whose output is replaced by the nearest of K codes; of equally near ones the first.

    The hidden layer cannot be had back from fewer features than it has units, and the features not from a code. Values
    that come out are rows of `codes`, bit by bit: with gradients on, the code c passes on what it is given to the
    output z of the network (straight-through: c + (z - z), whose second part is zero and has a gradient).

    Shape: `(..., D)` to `(..., features)`.
    """

    def __init__(self, inputs: int, hidden: int, features: int, codes: int) -> None:
        super().__init__()
        check_sizes(inputs, hidden, features, codes)
        self.inputs, self.features = inputs, features
        self.network = Mlp(inputs, [hidden], features)
        self.codes = nn.Parameter(torch.randn(codes, features))

    def extra_repr(self) -> str:
        """The number of codes, for `print(module)`."""
        return f"{len(self.codes)} codes"

    def before(self, x: Tensor) -> Tensor:
        """What is replaced by a code, `(..., features)`; numbers that are none count as zero."""
        return torch.nan_to_num(self.network(x))

    def forward(self, x: Tensor) -> Tensor:
        """The code of each sample."""
        z = self.before(x)
        return self.codes[nearest(z, self.codes)] + (z - z.detach())


def nearest(vectors: Tensor, codes: Tensor) -> Tensor:
    """Which of the codes `(K, d)` is nearest to each of the vectors `(..., d)`, int64 `(...)`."""
    distances = torch.cdist(vectors.detach().reshape(-1, codes.shape[1]).double(), codes.detach().double())
    return distances.argmin(-1).reshape(vectors.shape[:-1])


def codes_of(module: nn.Module) -> Tensor | None:
    """The codes `(K, d)` that a filter lets through; None if it is of another kind."""
    inside = module.filter if isinstance(module, Standardized) else module
    return inside.codes.detach() if isinstance(inside, CodeFilter) else None


def learn_codes(
    inputs: Tensor,
    task: Tensor,
    codes: int = 0,
    *,
    features: int = 0,
    hidden: int = HIDDEN,
    epochs: int = 40,
    seed: int = 0,
) -> Standardized:
    """A filter of codes, in two stages: a network is trained on the task alone, then codes are put where its classes
    are. Nobody needs to be hidden from it: that is what the codes are for.

    Inputs are `(n, ..., D)` and raw, labels to keep `(n, ...)`, 0 to classes - 1. `codes` is a multiple of the classes,
    so many means a class by k-means, or 0 for one a class; `features` 0 is one less than the classes, which is all
    that they need. Raises ModelError for labels and counts that do not fit.
    """
    classes = int(task.max()) + 1
    codes, features = codes or classes, features or max(1, classes - 1)
    if codes % classes or codes < classes:
        raise ModelError(f"codes must be a multiple of the {classes} classes, so many a class, got {codes}")
    if task.shape != inputs.shape[:-1]:
        raise ModelError(f"need a label for each of the inputs {tuple(inputs.shape[:-1])}, got {tuple(task.shape)}")
    scaling = Scaling(inputs)
    x, labels = scaling(inputs).flatten(0, -2).float(), task.flatten()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = CodeFilter(x.shape[1], hidden, features, codes).to(x.device)
        _train(made.network, nn.Linear(features, classes).to(x.device), x, labels, epochs)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        z = made.before(x)
        each = [
            kmeans(z[labels == label], codes // classes, generator=generator).centers[0] for label in range(classes)
        ]
        made.codes.copy_(torch.cat(each))
    return Standardized(made, scaling).to(inputs.dtype)


def _train(network: nn.Module, head: nn.Linear, x: Tensor, labels: Tensor, epochs: int) -> None:
    """Cross-entropy of a linear model on the network's features, by AdamW; labels and inputs are both softened."""
    optimizer = torch.optim.AdamW([*network.parameters(), *head.parameters()], RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(x)).to(x.device), BATCH):
            blurred = x[batch] + BLUR * torch.randn_like(x[batch])
            loss = functional.cross_entropy(head(network(blurred)), labels[batch], label_smoothing=SMOOTHING)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()
