"""Clients of networks that want the weights: by activations of their choice, as the published split gives them away."""

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto import Ring
from ppspeech.evidence.attacks import Gain, NotHereError, Target, attack
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.networks import NetworkShape, activate, prepare_network, tell
from ppspeech.service import Ask, Request, export_network, send_request

CHANCE = 5.0  # standard deviations of a correlation by chance


@attack("chosen_activations", "every weight of a network, by activations of its choice", tasks=("networks",))
def chosen_activations(target: Target) -> Gain:
    """Zero and unit vectors in place of frames and shares: the answers would be biases and columns of weights."""
    victim = target.usual
    if target.bundle is None or victim.offer.fingerprint != target.bundle.fingerprint:
        raise NotHereError("what was gained is measured against the bundle: give it with --bundle")
    own = export_network(target.bundle.model, target.bundle.labels)
    shape, found, true = own.shape, [], []
    with victim.session() as channel:
        met = meet_as_client(channel)
        send_request(channel, Request(Ask.WORDS))
        with met.session():
            engine = prepare_network(met, shape)
            for number in range(len(shape.layers)):
                share = met.multiply(shape.product(number), questions(shape, number))
                ring, count = Ring(shape.rings.results[number]), asked(shape, number)
                answers = ring.to_signed(share).astype(np.float64)
                found.append((answers[1 : count + 1] - answers[0]).ravel())
                true.append(own.rounded[number][:count].ravel())
                share = activate(engine, shape, number, share)
            tell(engine, shape, share, None)
    first = float(np.corrcoef(found[0], true[0])[0, 1])
    won = abs(first) > CHANCE / np.sqrt(len(true[0]))
    weights = len(true[0]) if won else 0
    note = f"correlation {first:.3f} of what it holds with {len(true[0]):,} weights of the first layer"
    return Gain(weights, "weights", 1, won, note)


def asked(shape: NetworkShape, number: int) -> int:
    """How many rows of a layer's matrix one question can ask for."""
    return min(shape.rows(number) - 1, shape.inner(number))


def questions(shape: NetworkShape, number: int) -> Reals:
    """A window of zeros, then unit vectors."""
    rows = np.zeros((shape.rows(number), shape.inner(number)))
    count = asked(shape, number)
    rows[1 : count + 1, :count] = np.eye(count)
    return rows
