"""The published split of a network (GELU-Net) gives its weights away; the same attack on shares finds noise.

Needs nothing; --quick takes about 10 s.
"""

from pathlib import Path

import numpy as np

from ppspeech.channel import Channel
from ppspeech.crypto.paillier import SECURE_BITS, generate_paillier
from ppspeech.evidence.bench.network import made_network
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.published.attacks.gelu_net import correlation, recovered, steal_published, steal_shared
from ppspeech.evidence.published.protocols.gelu_net import bob
from ppspeech.figures import Figure
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_server
from ppspeech.protocols.networks import NetworkArrays, answer_network

SIZES, QUICK_SIZES = (40, 32, 32, 10), (12, 8, 8, 4)
WITHIN = 1e-4


@EXPERIMENTS.register("gelu_net")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Run both protocols with a client that asks what it likes, and compare what it found with the weights.

    `quick`: a smaller network, and a key of 512 bits, which changes nothing of what is found.
    """
    sizes = QUICK_SIZES if quick else SIZES
    own = made_network(max(sizes[:-1]) + 1, sizes)
    bits = 512 if quick else SECURE_BITS
    key = generate_paillier(bits, insecure_demo=quick)
    frames, weights = own.shape.frames, sum(each.size for each in (*own.matrices, *own.biases))
    found, _ = run_together(
        lambda c: steal_published(c, key, sizes, insecure_demo=quick),
        lambda c: bob(c, own.matrices, own.biases, frames=frames, insecure_demo=quick),
    )
    shared, _ = run_together(lambda c: steal_shared(c, own.shape), lambda c: serve(c, own))
    note = f"{weights:,} weights of {'-'.join(map(str, sizes))}, {frames} frames, each within {WITHIN:g}"
    told = recovered(found, own.matrices, own.biases, WITHIN)
    kept = recovered(shared, own.matrices, own.biases, WITHIN)
    noise = f"of {weights:,}; chance is within {4 / np.sqrt(weights):.3f}"
    return [
        Figure("gelu_net.weights_recovered", told, note=f"the published split, key of {bits} bits; {note}"),
        Figure("gelu_net.ours.weights_recovered", kept, note=f"the same attack on shares; {note}"),
        Figure("gelu_net.correlation", correlation(found, own.matrices), note="of what was found and the weights"),
        Figure("gelu_net.ours.correlation", correlation(shared, own.matrices), note=noise),
    ]


def serve(channel: Channel, own: NetworkArrays) -> None:
    """The server of the sound form, as it is."""
    met = meet_as_server(channel)
    with met.session():
        answer_network(met, own)
