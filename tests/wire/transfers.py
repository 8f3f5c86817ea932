"""Oblivious transfers, as the second party: set-up, extension, and what its sender checks."""

import hashlib
import os
import secrets
from typing import Any

import nacl.bindings as sodium
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

BASE_POINT, BASE_REPLY, COLUMNS, CODE_COLUMNS, BASE_COLUMNS = 201, 202, 204, 205, 206
PORTION, CHECK_ROWS = 65536, 128


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "little") ^ int.from_bytes(right, "little")).to_bytes(len(left), "little")


def tweaked(block: bytes, number: int) -> bytes:
    return xor(block, number.to_bytes(16, "little"))


def hash_to_group(data: bytes) -> bytes:
    digest = hashlib.sha512(data).digest()
    halves = [sodium.crypto_core_ed25519_from_uniform(half) for half in (digest[:32], digest[32:])]
    return sodium.crypto_core_ed25519_add(*halves)


class BlockHash:
    def __init__(self, key: bytes) -> None:
        self._aes = Cipher(algorithms.AES(key), modes.ECB()).encryptor()

    def narrow(self, row: bytes, number: int) -> bytes:
        inner = self._aes.update(row)
        return xor(self._aes.update(tweaked(inner, number)), inner)

    def wide(self, row: bytes, number: int) -> bytes:
        inner = xor(self._aes.update(row[:16]), row[16:])
        return xor(self._aes.update(tweaked(inner, number)), inner)


def transposed(columns: list[bytes]) -> list[bytes]:
    """Bit i of row j is bit j of column i; the first bit of a byte is its lowest."""
    size = 8 * len(columns[0])
    spelled = [f"{int.from_bytes(column, 'little'):0{size}b}"[::-1] for column in reversed(columns)]
    return [int("".join(row), 2).to_bytes(len(columns) // 8, "little") for row in zip(*spelled, strict=True)]


def encoded(parts: list[bytes], columns: int) -> list[bytes]:
    """128 copies of one part, or for 8 parts column i: the exclusive or of parts b where bit b of i is 1."""
    found = []
    for i in range(columns):
        chosen = [part for b, part in enumerate(parts) if (i >> b) & 1] if columns == 256 else parts
        column = bytes(len(parts[0]))
        for part in chosen:
            column = xor(column, part)
        found.append(column)
    return found


def hashes(challenge: bytes, columns: list[bytes]) -> list[bytes]:
    gcm = AESGCM(challenge)
    zero = gcm.encrypt(bytes(12), b"", bytes(len(columns[0])))
    return [xor(gcm.encrypt(bytes(12), b"", column), zero) for column in columns]


def digest(found: list[bytes]) -> bytes:
    return sha(b"ppspeech columns" + b"".join(found))


class Streams:
    def __init__(self, keys: list[bytes]) -> None:
        self._streams = [Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor() for key in keys]

    def read(self, rows: int) -> list[bytes]:
        return [stream.update(bytes(rows // 8)) for stream in self._streams]


def portions(count: int) -> list[int]:
    return [PORTION] * (count // PORTION) + ([count % PORTION] if count % PORTION else [])


def padded(count: int) -> int:
    return -(-count // 128) * 128 + CHECK_ROWS


class Receiver:
    """Chooses. `pairs`: two keys a column."""

    def __init__(self, pairs: list[tuple[bytes, bytes]], key: bytes, label: bytes) -> None:
        self.hash, self.done, self.said = BlockHash(key), 0, hashlib.sha256(b"ppspeech transfers" + label)
        self._streams = [Streams([pair[side] for pair in pairs]) for side in (0, 1)]
        self._columns = len(pairs)

    def rows(self, wire: Any, choices: list[int], kind: int) -> list[bytes]:
        rows, at, bits = [], 0, 8 if self._columns == 256 else 1
        for part in portions(len(choices)):
            own, other = (stream.read(padded(part)) for stream in self._streams)
            chosen = choices[at : at + part] + list(os.urandom(padded(part) - part))
            parts = [
                int("".join(str(choice >> b & 1) for choice in reversed(chosen)), 2).to_bytes(len(own[0]), "little")
                for b in range(bits)
            ]
            code = encoded(parts, self._columns)
            columns = b"".join(
                xor(xor(*pair), word) for pair, word in zip(zip(own, other, strict=True), code, strict=True)
            )
            self.said.update(columns)
            challenge = self.said.digest()
            wire.send(kind, columns + b"".join(hashes(challenge, parts)) + digest(hashes(challenge, own)))
            rows += transposed(own)[:part]
            at += part
        self.done += len(choices)
        return rows


class Sender:
    """Knows both messages. `secret`: a bit a column; `keys`: the one it names. Only 1-of-2 is sent by a client."""

    def __init__(self, secret: list[int], keys: list[bytes], key: bytes, label: bytes) -> None:
        self.hash, self.done, self.said = BlockHash(key), 0, hashlib.sha256(b"ppspeech transfers" + label)
        self._secret, self._streams = secret, Streams(keys)
        self.delta = sum(bit << place for place, bit in enumerate(secret)).to_bytes(16, "little")

    def rows(self, wire: Any, count: int, kind: int) -> list[bytes]:
        rows: list[bytes] = []
        for part in portions(count):
            own = self._streams.read(padded(part))
            size = len(own[0])
            message = wire.receive(kind, 128 * size + 16 + 32)
            given = [message[i * size : (i + 1) * size] for i in range(128)]
            self.said.update(message[: 128 * size])
            columns = [xor(one, got) if bit else one for one, got, bit in zip(own, given, self._secret, strict=True)]
            shown, told = message[128 * size : 128 * size + 16], message[128 * size + 16 :]
            found = hashes(self.said.digest(), columns)
            if digest([xor(one, shown) if bit else one for one, bit in zip(found, self._secret, strict=True)]) != told:
                raise ConnectionError("the server's columns do not agree: it cheats")
            rows += transposed(columns)[:part]
        self.done += count
        return rows


class Setup:
    """What a meeting leaves to the second party."""

    def __init__(self, wire: Any) -> None:
        pairs, said = offer(wire, 128)
        self.id = sha(b"ppspeech setup" + said)[:16]
        forth, back, wide = (sha(self.id + use)[:16] for use in (b"0", b"1", b"n"))
        self.receiver = Receiver(pairs, forth, self.id)
        secret = [secrets.randbits(1) for _ in range(128)]
        rows = self.receiver.rows(wire, secret, BASE_COLUMNS)
        keys = [self.receiver.hash.narrow(row, number) for number, row in enumerate(rows)]
        self.sender = Sender(secret, keys, back, self.receiver.said.digest())
        rows = self.sender.rows(wire, 256 + 128, BASE_COLUMNS)
        hash_, delta = self.sender.hash, self.sender.delta
        both = [(hash_.narrow(row, n), hash_.narrow(xor(row, delta), n)) for n, row in enumerate(rows)]
        self.code = Receiver(both[:256], wide, self.sender.said.digest())  # the other 128 are for garbled circuits

    def position(self) -> bytes:
        counters = (self.receiver.done, self.sender.done, self.code.done, 0, 0)
        return self.id + b"".join(number.to_bytes(8, "big") for number in counters)


def offer(wire: Any, count: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Base transfers, as their sender."""
    secret = sodium.crypto_core_ed25519_scalar_reduce(os.urandom(64))
    point = sodium.crypto_scalarmult_ed25519_base_noclamp(secret)
    wire.send(BASE_POINT, point)
    reply, keys = wire.receive(BASE_REPLY, 64 * count), []
    for number in range(count):
        answer = reply[64 * number : 64 * number + 64]
        halves = answer[:32], answer[32:]
        if not all(sodium.crypto_core_ed25519_is_valid_point(half) for half in halves):
            raise ConnectionError("no point of the group")
        keys.append((base_key(number, 0, secret, point, answer), base_key(number, 1, secret, point, answer)))
    return keys, sha(point + reply)


def base_key(number: int, side: int, secret: bytes, point: bytes, answer: bytes) -> bytes:
    place = number.to_bytes(4, "big") + bytes([side])
    own, other = (answer[:32], answer[32:])[:: 1 if side == 0 else -1]
    hashed = hash_to_group(b"ppspeech base ot, half" + place + point + other)
    product = sodium.crypto_scalarmult_ed25519_noclamp(secret, sodium.crypto_core_ed25519_add(own, hashed))
    return sha(b"ppspeech base ot, key" + place + point + answer + product)[:16]
