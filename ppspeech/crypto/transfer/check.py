"""Whether the receiver of extended transfers chose alike in all columns, hashed column by column.

A receiver sends one blinded column for each bit of the sender's secret s. If the choices in its columns are not those
of code words, the rows that the sender makes of them tell it bits of s, and with s every message of every transfer. So
the sender has the receiver show a linear hash L of its choices, and compares:

    L(q_i) = L(t_i) ⊕ s_i L(x_i)   for every column i,      x_i = the code's column i of the choices' bits

The receiver sends L of the choices' bits (8 columns for 1-of-n, 1 for 1-of-2) and the SHA-256 of all L(t_i); the sender
makes the same of its own columns and compares. L is GHASH, polynomial evaluation over GF(2^128) at a point that is
drawn by hashing all columns after they were sent: columns with different choices collide with probability at most
(blocks + 1) / 2^128. 128 rows of choices that no transfer uses make L of the others uniform to the sender.

What it proves. Let S be the columns where the receiver's hashes are not those of its choices. The check of column i in
S passes for one value of s_i only: it passes everywhere with probability 2^-|S|, and then tells the receiver exactly
the bits of s in S. Outside S all relations of the code of weight up to 4 hold between hashes. Except with probability
2^20 (blocks + 1) / 2^128 a challenge (2^-98 for a full portion of 513 blocks) they then hold between the choices: that
columns i and i' are equal (1-of-2), that column i ⊕ i' is the sum of columns i and i' (1-of-n: a function on 256 places
that adds up outside at most 85 of them is linear there). So outside S every row is a code word, and each message but
the chosen one stays behind as many unknown bits of s as before, less |S|, which came at the price of a failure with
probability 1 - 2^-|S|: all in all 2^-128 a guess, as for a receiver that does not cheat (more than 85 columns pass with
probability below 2^-85 a setup). What a failure tells the receiver is that its guess of |S| bits was wrong; it ends the
session and spends the setup with its s, so that nothing is learned for another one.

This is the check of Keller, Orsini and Scholl (2015) for 1-of-2 and of Orrù, Orsini and Scholl (2017) for 1-of-n, in
the form that hashes columns (Patra, Sarkar and Suresh 2017; the revised proof of the former). The form first printed
adds up rows in GF(2^128), where a cheat may trade columns against each other and the proof has a gap (Roy 2022);
between columns hashed one by one nothing can be traded. The challenge is the hash of all that was said since the base
transfers (Fiat and Shamir 1986), which saves a round trip: a cheat may try as many challenges as it can compute hashes,
and for that the hash has 128 bits and not 40. SHA-256 is modeled as a random oracle, AES as an ideal cipher. Theorem
2.11 in docs/theory/asking.md.
"""

import hashlib

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ppspeech.arrays import Bytes

CHECK_ROWS = 128
"""Transfers with random choices that only blind the check."""
HASH_BYTES = 16
DIGEST_BYTES = 32


def check_bytes(bits: int) -> int:
    """What a receiver sends for the check of choices of so many bits."""
    return bits * HASH_BYTES + DIGEST_BYTES


def hash_columns(challenge: bytes, columns: Bytes) -> Bytes:
    """L of every column, `(columns, bytes)` to `(columns, 16)`; linear over the exclusive or.

    AES-GCM of nothing, with a column as associated data, is GHASH of the column at AES(0) ⊕ a constant. Key and nonce
    are public: it serves as a universal hash that processors have instructions for, not as a seal.
    """
    ghash = AESGCM(challenge)
    constant = ghash.encrypt(bytes(12), b"", bytes(columns.shape[1]))
    tags = b"".join([ghash.encrypt(bytes(12), b"", column.data) for column in columns])
    return np.frombuffer(tags, np.uint8).reshape(-1, HASH_BYTES) ^ np.frombuffer(constant, np.uint8)


def digest(hashes: Bytes) -> bytes:
    """What stands for the hashes of all columns."""
    return hashlib.sha256(b"ppspeech columns" + hashes.tobytes()).digest()
