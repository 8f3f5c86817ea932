"""Mutants of log-ins by voice and digits."""

from tests.mutants.mutant import mutant

PROTOCOL = "protocols/speakers/login.py"
SEAL = "service/login/seal.py"
ACCOUNTS = "service/login/accounts.py"
SERVED = "service/login/served.py"
PROTOCOL_TESTS = "tests/protocols/test_speaker_login.py"
SERVICE_TESTS = "tests/service/test_login.py"

LOGIN = [
    mutant(
        "login: the same digits again",
        "a recording of yesterday is let in",
        PROTOCOL_TESTS,
        (PROTOCOL, "tuple(secrets.randbelow(TEN) for _ in range(count))", "tuple(range(count))"),
    ),
    mutant(
        "login: the last digit not checked",
        "three digits of four are enough",
        PROTOCOL_TESTS,
        (PROTOCOL, "np.asarray(holds.all(axis=1))[:, None]", "np.asarray(holds[:, :-1].all(axis=1))[:, None]"),
    ),
    mutant(
        "login: one threshold for all digits",
        "a digit that is easily taken for another is let through",
        PROTOCOL_TESTS,
        (PROTOCOL, "self.least[np.concatenate([[0], 1 + at])]", "self.least[np.concatenate([[0], 1 + 0 * at])]"),
    ),
    mutant(
        "login: the label of a part that failed",
        "whoever has the key is let in",
        PROTOCOL_TESTS,
        (PROTOCOL, "np.asarray(holds.all(axis=1))[:, None]", "np.asarray(holds.any(axis=1))[:, None]"),
    ),
    mutant(
        "login: digits in any order",
        "fewer recordings are enough for all questions",
        PROTOCOL_TESTS,
        (PROTOCOL, "self.digits[at].reshape(-1)", "self.digits[np.sort(at)].reshape(-1)"),
    ),
    mutant(
        "login: secrets of one bit bind rows",
        "a client moves its score",
        PROTOCOL_TESTS,
        (PROTOCOL, "uniform_residues(2 * parts).reshape(parts, 2)", "uniform_residues(2 * parts, 1).reshape(parts, 2)"),
    ),
    mutant(
        "login: labels whose lowest bit says what they are",
        "a client sees which part failed",
        PROTOCOL_TESTS,
        (
            PROTOCOL,
            "    drawn[:, 1, 0] = (drawn[:, 1, 0] & 0xFE) | (~drawn[:, 0, 0] & 1)",
            "    drawn[:, 0, 0] &= 0xFE\n    drawn[:, 1, 0] |= 1",
        ),
    ),
    mutant(
        "login: the time not looked at",
        "speech is made at leisure",
        PROTOCOL_TESTS,
        (PROTOCOL, "        return accepted and in_time", "        return accepted"),
    ),
    mutant(
        "login: templates as they are",
        "whoever steals the store has everybody's voice",
        SERVICE_TESTS,
        (
            SEAL,
            "nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plain, _bound(name, space), nonce, key)",
            "nonce + plain + bytes(16)",
        ),
        (
            SEAL,
            "crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[_NONCE:], _bound(name, space), sealed[:_NONCE], key)",
            "sealed[_NONCE:-16]",
        ),
    ),
    mutant(
        "login: a template for any name",
        "who has an account is let in by another's name, if it can write the store",
        SERVICE_TESTS,
        (SEAL, 'f"ppspeech login {space} {name}".encode()', 'f"ppspeech login {space}".encode()'),
    ),
    mutant(
        "login: attempts counted after they failed",
        "whoever hangs up chooses its digits",
        SERVICE_TESTS,
        (ACCOUNTS, "SET failed = failed + 1, last = ?", "SET failed = failed, last = ?"),
    ),
    mutant(
        "login: a wrong key is told",
        "a stranger learns who has an account",
        SERVICE_TESTS,
        (
            SERVED,
            "        person = LoginPerson.nobody(plan) if template is None",
            "        if template is None and sealed is not None:\n"
            "            send_ready(channel, False, None)\n"
            "            return\n"
            "        person = LoginPerson.nobody(plan) if template is None",
        ),
    ),
    mutant(
        "login: who logs in is in the log",
        "whoever reads logs learns who came when",
        SERVICE_TESTS,
        (
            SERVED,
            'extra={FIELDS: {"session": visitor.session, "accepted": accepted}}',
            'extra={FIELDS: {"session": visitor.session, "accepted": accepted, "name": name}}',
        ),
    ),
    mutant(
        "login: thresholds below what is common to all",
        "a client without a voice is let in by the names of people like everybody",
        SERVICE_TESTS,
        (
            "service/login/thresholds.py",
            "max(usual, float(common @ template) + COMMON_MARGIN)",
            "usual",
        ),
    ),
    mutant(
        "login: keys that others read",
        "whoever has an account on the device has the key",
        SERVICE_TESTS,
        (SEAL, "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)", "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)"),
    ),
]
