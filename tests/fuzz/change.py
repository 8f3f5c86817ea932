"""Inputs from seeds: changed bytes, and values of JSON, YAML and CSV that are changed for others."""

import json
from random import Random
from typing import Any

import yaml

from tests.fuzz.door import Door

NESTED = 100_000
TOKENS = [
    *("null", "true", "false", "[]", "{}", "[[]]", "[null]", "[0, 0]", "[-1]", "[1e308]", '["a", "a"]', '{"a": {}}'),
    *("0", "-1", "1", "-0.0", "0.5", "1e308", "1e-308", "1e400", "-1e400", "NaN", "Infinity", "1_0", "0x1f", "1:2:3"),
    *("65536", "2147483648", "9223372036854775808", "1" + "0" * 400, "9" * 5000),
    *(
        '""',
        '"a"',
        '"\\ud800"',
        '"\\u0000"',
        '"\\u001b[2J"',
        '"' + "a" * 3000 + '"',
        '"../../etc/passwd"',
        '"1"',
        '"nan"',
    ),
]
RAW = [
    *(token.encode() for token in TOKENS),
    *(
        b"[" * NESTED,
        b'{"a":' * NESTED,
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x80",
        b"\xed\xa0\x80",
        b"\r\n",
        b"\n",
    ),
    *(
        b",",
        b'"',
        b"'",
        b": ",
        b"- ",
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!binary x",
        b"2001-99-99",
        b"%",
        b"? ",
        b"|",
        b"---\n",
    ),
    b"!!python/object/apply:os.system [true]",
]
LENGTHS = (0, 1, 2, 4, 8, 28, 32, 64, 100, 4096, 70_000)


def change(door: Door, dice: Random) -> bytes:
    """An input for a door."""
    seed = dice.choice(door.seeds)
    if dice.random() < 0.02:
        return dice.randbytes(dice.choice(LENGTHS))
    if door.form == "bytes" or dice.random() < 0.25:
        return change_bytes(seed, dice)
    if door.form == "csv":
        return change_rows(seed, dice)
    plain = json.loads(seed) if door.form == "json" else yaml.safe_load(seed)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        plain = change_plain(plain, dice)
    return write(plain, door.form)


def change_bytes(seed: bytes, dice: Random) -> bytes:
    """Cut, lengthened, with something in place of something else, or bits flipped; mostly near the beginning."""
    kind = dice.randrange(7)
    near = dice.random() < 0.7
    place = dice.randrange(min(len(seed), 150) + 1 if near else len(seed) + 1)
    if kind == 0:
        return seed[:place]
    if kind == 1:
        return seed + dice.randbytes(dice.randrange(1, 50))
    if kind == 2:
        return seed[:place] + dice.choice(RAW) + seed[place + dice.randrange(8) :]
    if kind == 3:
        other = dice.randrange(len(seed) + 1)
        return seed[:place] + seed[other : other + dice.randrange(64)] + seed[place:]
    changed = bytearray(seed or b"\0")
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(min(len(changed), 150) if near else len(changed))
        changed[at] = (
            dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
            if kind < 6
            else changed[at] ^ 1 << dice.randrange(8)
        )
    return bytes(changed)


class Raw(str):
    """Stands for what is written as it is, without quotes."""


def change_plain(plain: Any, dice: Random) -> Any:
    """The same with one value, or one key, in place of another."""
    if not isinstance(plain, dict | list) or not plain or dice.random() < 0.05:
        return Raw(dice.choice(TOKENS))
    if isinstance(plain, list):
        at = dice.randrange(len(plain))
        if dice.random() < 0.1:
            return [*plain[:at], *plain[at:] * dice.choice((0, 2, 50))]
        return [*plain[:at], change_plain(plain[at], dice), *plain[at + 1 :]]
    key = dice.choice(list(plain))
    rest = {each: value for each, value in plain.items() if each != key}
    kind = dice.random()
    if kind < 0.05:
        return rest
    if kind < 0.1:
        return rest | {f"{key}x": plain[key]}
    if kind < 0.15:
        return plain | {dice.choice(("a", "", "__class__", "\x00", "type")): plain[key]}
    return {each: change_plain(value, dice) if each == key else value for each, value in plain.items()}


def write(plain: Any, form: str) -> bytes:
    """As JSON, of which YAML is more, or as YAML in blocks where it has no raw values."""
    if isinstance(plain, Raw):
        return plain.encode()
    if isinstance(plain, dict):
        inner = ", ".join(f"{json.dumps(str(key))}: {write(value, form).decode()}" for key, value in plain.items())
        return f"{{{inner}}}".encode()
    if isinstance(plain, list):
        return f"[{', '.join(write(each, form).decode() for each in plain)}]".encode()
    return json.dumps(plain, default=str).encode()


def change_rows(seed: bytes, dice: Random) -> bytes:
    """A table of text with one cell changed, doubled or left out."""
    rows = [line.split(b",") for line in seed.split(b"\n")]
    row = dice.choice(rows)
    at = dice.randrange(len(row))
    row[at : at + 1] = dice.choice(([], [dice.choice(RAW)], [row[at], row[at]], [b'"' + row[at]], [row[at] + b"/../x"]))
    return b"\n".join(b",".join(each) for each in rows)
