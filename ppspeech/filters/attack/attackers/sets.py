"""Attackers that see several clips of one person at once, and learn from sets drawn from the training clips."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.filters.attack.attackers.attacker import SET_ATTACKERS, Clips, Scorer
from ppspeech.filters.attack.attackers.gaussians import Centers, Scale, lda
from ppspeech.filters.attack.attackers.networks import fit_, knowing_words

MOST_FEATURES = 600  # of a mean embedding; above, it does not tell words apart
SETS_A_PERSON = 60  # to learn means from
UNITS, EPOCHS = 96, 30
DRAWS_A_PERSON, MOST_DRAWS = 96, 2_560  # sets an epoch of a network on sets


@SET_ATTACKERS.register("mean")
def mean(clips: Clips, labels: Tensor, classes: int, seed: int, size: int) -> Scorer[Clips]:
    """The mean of the clips' deviations from their words, word by word, and linear discriminants of such means."""
    scale, number = Scale(clips.features), int(clips.words.max()) + 1
    x = scale(clips.features)
    centers = Centers.of(x, clips.words, labels, number, classes)
    by_word = number * x.shape[1] <= MOST_FEATURES

    def embedded(sets: Clips) -> Tensor:
        words = sets.words.clamp_max(number - 1)
        apart = scale(sets.features) - centers.word[words]
        if not by_word:
            return apart.mean(1)
        said = functional.one_hot(words, number).double()
        return torch.einsum("stw,std->swd", said, apart).flatten(1) / apart.shape[1]

    whose = torch.unique(labels).repeat_interleave(SETS_A_PERSON)
    drawn = _draw(_own(labels), whose, size, torch.Generator().manual_seed(seed))
    learned = embedded(Clips(clips.features[drawn], clips.words[drawn]))
    told = lda(Clips(learned, torch.zeros_like(whose)), whose, classes, seed)

    def scores(asked: Clips) -> Tensor:
        return told(Clips(embedded(asked), torch.zeros_like(asked.words[:, 0])))

    return scores


class DeepSets(nn.Module):
    """A network a clip, the mean over the set, a network on that (Zaheer et al. 2017). Shape: `(sets, clips, inputs)`
    to `(sets, classes)`.
    """

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.clip = nn.Sequential(nn.Linear(inputs, UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS), nn.ReLU())
        self.whole = nn.Sequential(nn.LayerNorm(UNITS), nn.Linear(UNITS, UNITS), nn.ReLU(), nn.Linear(UNITS, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of each set."""
        scores: Tensor = self.whole(self.clip(x).mean(-2))
        return scores


@SET_ATTACKERS.register("deep_sets")
def deep_sets(clips: Clips, labels: Tensor, classes: int, seed: int, size: int) -> Scorer[Clips]:
    """A network on sets, trained on new draws in every epoch; it knows the words."""
    scale, number = Scale(clips.features), int(clips.words.max()) + 1
    x = knowing_words(scale(clips.features).float(), clips.words, number)
    people, own = torch.unique(labels), _own(labels)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = DeepSets(x.shape[1], classes).to(x.device)

        def shown(rows: Tensor) -> tuple[Tensor, Tensor]:
            whose = people[torch.randint(len(people), (len(rows),), generator=generator).to(people.device)]
            return x[_draw(own, whose, size, generator)], whose

        fit_(network, shown, min(MOST_DRAWS, DRAWS_A_PERSON * len(people)), EPOCHS)

    @torch.no_grad()
    def scores(asked: Clips) -> Tensor:
        said: Tensor = (
            network(knowing_words(scale(asked.features).float(), asked.words, number)).double().log_softmax(-1)
        )
        absent = torch.bincount(labels, minlength=classes) == 0
        return said.masked_fill(absent, float(said.min()) - 1)

    return scores


def _own(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Everyone's clips, `(people, most)`, and how many there are, `(people,)`; rows are filled up with clip 0."""
    counts = torch.bincount(labels)
    order = labels.argsort(stable=True)
    place = torch.arange(len(labels), device=labels.device) - (counts.cumsum(0) - counts)[labels[order]]
    own = order.new_zeros(len(counts), int(counts.max()))
    own[labels[order], place] = order
    return own, counts


def _draw(own: tuple[Tensor, Tensor], people: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Clips of each of these people, `(sets, size)`, without return where there are enough."""
    clips, counts = own[0][people.to(own[0].device)], own[1][people.to(own[1].device)].unsqueeze(-1)
    chance = torch.rand(len(people), max(size, clips.shape[1]), generator=generator).to(clips.device)
    again = (chance[:, :size] * counts).long()
    there = torch.arange(chance.shape[1], device=clips.device) < counts
    once = chance.masked_fill(~there, 2.0).argsort(1)[:, :size]
    return clips.gather(1, torch.where(counts < size, again, once))
