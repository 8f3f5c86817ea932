"""The embedding attacker: a small network turns an utterance into a vector in which people stand apart."""

import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.audio import Frames, length_mask
from ppspeech.filters.attack.attackers.attacker import SPEECH_ATTACKERS, Scorer, Standardizing

CHANNELS, EMBEDDING = 96, 64
BATCH, EPOCHS, RATE, DECAY = 64, 24, 3e-3, 1e-3
BLOCK = 200


class SpeakerNetwork(nn.Module):
    """An x-vector network (Snyder et al. 2018) in small: convolutions, mean and deviation, a bottleneck."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(features, CHANNELS, 5, padding=2)
        self.second = nn.Conv1d(CHANNELS, CHANNELS, 3, padding=2, dilation=2)
        self.pooled = nn.LayerNorm(2 * CHANNELS)
        self.bottleneck = nn.Linear(2 * CHANNELS, EMBEDDING)
        self.people = nn.Linear(EMBEDDING, classes)

    def embed(self, frames: Frames) -> Tensor:
        """The bottleneck of each utterance, `(utterances, EMBEDDING)`; padding has no part in it."""
        inside = length_mask(frames.lengths, frames.features.shape[1]).unsqueeze(1)
        x = functional.relu(self.first(frames.features.mT)) * inside
        x = functional.relu(self.second(x)) * inside
        count = frames.lengths.clamp_min(1).unsqueeze(-1)
        mean = x.sum(-1) / count
        variance = ((x - mean.unsqueeze(-1)) * inside).square().sum(-1) / count
        embedding: Tensor = self.bottleneck(self.pooled(torch.cat([mean, (variance + 1e-6).sqrt()], dim=-1)))
        return embedding

    def forward(self, frames: Frames) -> Tensor:
        """Scores of each utterance for each person, `(utterances, classes)`."""
        scores: Tensor = self.people(functional.relu(self.embed(frames)))
        return scores


@SPEECH_ATTACKERS.register("embedding")
def embedding(frames: Frames, labels: Tensor, classes: int, seed: int) -> Scorer[Frames]:
    """Train the network on filtered speech, throw its last layer away and tell people apart by linear discriminants.
    Scores are the log-posteriors of the discriminants. People without training speech score below all others.
    """
    scale = Standardizing(frames)
    seen = scale(frames)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SpeakerNetwork(seen.features.shape[-1], classes).to(seen.features)
        _train(network, seen, labels)
    known, places = torch.unique(labels, return_inverse=True)
    discriminants = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.05)
    discriminants.fit(_embeddings(network, seen).numpy(force=True), places.numpy(force=True))

    def scores(asked: Frames) -> Tensor:
        found = torch.from_numpy(discriminants.predict_log_proba(_embeddings(network, scale(asked)).numpy(force=True)))
        everyone = found.new_full((len(found), classes), float(found.min()) - 1)
        everyone[:, known.to(everyone.device)] = found
        return everyone.to(asked.features.device)

    return scores


def _train(network: SpeakerNetwork, frames: Frames, labels: Tensor) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        # The order comes from the CPU, so that every device sees the same batches.
        for batch in torch.split(torch.randperm(len(labels)).to(labels.device), BATCH):
            some = Frames(frames.features[batch], frames.lengths[batch])
            loss = functional.cross_entropy(network(some), labels[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()


@torch.no_grad()
def _embeddings(network: SpeakerNetwork, frames: Frames) -> Tensor:
    blocks = zip(torch.split(frames.features, BLOCK), torch.split(frames.lengths, BLOCK), strict=True)
    return torch.cat([network.embed(Frames(*block)) for block in blocks]).double()
