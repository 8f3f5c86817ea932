"""Alice and Bob of the paper: she has the Paillier key and the voice, he the models and, of her numbers, ciphertexts.

In the paper Alice is "a client" and Bob "a server". Bob's results are multiplied by a fresh encryption of zero before
they leave; the paper sends them as they come out of the homomorphic operations, which shows Alice, who made the inputs
and can take their randomness out, by what Bob raised them. `strict` does it the paper's way.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ppspeech.channel import Channel
from ppspeech.crypto.paillier import Ciphertext, PaillierPublicKey, PaillierSecretKey, Unfinished
from ppspeech.errors import PrivacyError
from ppspeech.protocols import Kind, RegisteredProtocol

Encrypted = Ciphertext | Unfinished

LARGEST_KEY_BYTES = 3 + 2**16 // 8

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alice:
    """The key holder."""

    channel: Channel
    key: PaillierSecretKey

    def send(self, kind: Kind, values: Sequence[int]) -> None:
        """Send ξ(value) for each value."""
        self.channel.send(kind, self.key.public.dump(self.key.encrypt_many(values)))

    def receive(self, kind: Kind, count: int) -> list[int]:
        """Receive and decrypt `count` ciphertexts."""
        public = self.key.public
        return self.key.decrypt_many(public.load(self.channel.receive(kind, public.wire_bytes(count)), count))


@dataclass(frozen=True)
class Bob:
    """The one who computes on ciphertexts. `strict`: send results as printed, without a fresh encryption of zero."""

    channel: Channel
    public: PaillierPublicKey
    strict: bool = False

    def send(self, kind: Kind, results: Sequence[Unfinished]) -> None:
        """Send results."""
        if self.strict:
            # Adding nothing changes nothing, but refuses what is under another key.
            leaving = [self.public.accept(self.public.add_plain(result, 0).value) for result in results]
        else:
            leaving = self.public.finish_many(results)
        self.channel.send(kind, self.public.dump(leaving))

    def receive(self, kind: Kind, count: int) -> list[Ciphertext]:
        """Receive and check `count` ciphertexts."""
        return self.public.load(self.channel.receive(kind, self.public.wire_bytes(count)), count)


def meet_as_alice(
    channel: Channel, key: PaillierSecretKey, protocol: RegisteredProtocol, *, insecure_demo: bool
) -> Alice:
    """Say what the protocol leaks, and send Bob the public key; a short one needs `insecure_demo`."""
    announce(protocol, key.public, insecure_demo=insecure_demo)
    channel.send(Kind.PAILLIER_KEY, key.public.to_bytes())
    return Alice(channel, key)


def meet_as_bob(channel: Channel, protocol: RegisteredProtocol, *, strict: bool, insecure_demo: bool) -> Bob:
    """Say what the protocol leaks, and take Alice's public key; a short one needs `insecure_demo`."""
    data = channel.receive(Kind.PAILLIER_KEY, at_most=LARGEST_KEY_BYTES)
    public = PaillierPublicKey.from_bytes(data, insecure_demo=insecure_demo)
    announce(protocol, public, insecure_demo=insecure_demo)
    return Bob(channel, public, strict)


def announce(protocol: RegisteredProtocol, public: PaillierPublicKey, *, insecure_demo: bool) -> None:
    """Log what a published protocol leaks; refuse a key that protects nothing, unless that is said to be meant."""
    if public.insecure_demo and not insecure_demo:
        raise PrivacyError(
            f"a {public.bits}-bit key protects nothing: use at least 2048 bits, "
            "or say insecure_demo=True if that does not matter here"
        )
    logger.warning("%s is the paper's own and leaks: %s", protocol.name, protocol.leakage)
