"""Mutants of log-ins by voice and digits."""

from tests.mutants.mutant import mutant

PROTOCOL = "protocols/speakers/login.py"
SEAL = "service/login/seal.py"
KEYS = "service/store/seal.py"
ACCOUNTS = "service/login/accounts.py"
KEEPER = "service/login/keeper.py"
SERVED = "service/login/served.py"
PROTOCOL_TESTS = "tests/protocols/test_speaker_login.py"
SERVICE_TESTS = "tests/service/test_login.py"

LOGIN = [
    mutant(
        "login: a clock that is set back opens",
        "whoever has a stolen key tries on without end while clocks are put right, or where two servers' differ",
        f"{SERVICE_TESTS}::test_a_clock_that_was_set_back_locks_until_somebody_unlocks",
        (ACCOUNTS, "failed >= self._tries and left > 0:", "failed >= self._tries and 0 < left <= self._seconds:"),
    ),
    mutant(
        "login: a failure in the future counts as one of now",
        "servers whose clocks differ are asked in turn, and no lock holds",
        f"{SERVICE_TESTS}::test_clocks_that_differ_give_no_more_tries",
        (
            ACCOUNTS,
            "            left = float(self._seconds - (now - last))\n",
            "            if last > now:\n"
            '                ask("UPDATE accounts SET last = ? WHERE space = ? AND name = ?", now, *key)\n'
            "            left = float(self._seconds - (now - min(last, now)))\n",
        ),
    ),
    mutant(
        "login: what is removed stays in the file",
        "whoever steals the store and a key has the voice of somebody who was to be forgotten",
        f"{SERVICE_TESTS}::test_whoever_keeps_the_store_unlocks_and_removes_people",
        (KEEPER, "PRAGMA secure_delete = ON", "PRAGMA secure_delete = OFF"),
    ),
    mutant(
        "login: the same digits again",
        "a recording of yesterday is let in",
        f"{PROTOCOL_TESTS}::test_what_is_asked_is_drawn_anew_from_all_digits",
        (PROTOCOL, "tuple(secrets.randbelow(TEN) for _ in range(count))", "tuple(range(count))"),
    ),
    mutant(
        "login: the last digit not checked",
        "three digits of four are enough",
        f"{PROTOCOL_TESTS}::test_every_part_has_its_own_threshold_and_one_bit_fewer_anywhere_is_a_no",
        (PROTOCOL, "np.asarray(holds.all(axis=1))[:, None]", "np.asarray(holds[:, :-1].all(axis=1))[:, None]"),
    ),
    mutant(
        "login: one threshold for all digits",
        "a digit that is easily taken for another is let through",
        f"{PROTOCOL_TESTS}::test_every_part_has_its_own_threshold_and_one_bit_fewer_anywhere_is_a_no",
        (PROTOCOL, "self.least[np.concatenate([[0], 1 + at])]", "self.least[np.concatenate([[0], 1 + 0 * at])]"),
    ),
    mutant(
        "login: the label of a part that failed",
        "whoever has the key is let in",
        f"{PROTOCOL_TESTS}::test_other_digits_and_another_order_are_rejected",
        (PROTOCOL, "np.asarray(holds.all(axis=1))[:, None]", "np.asarray(holds.any(axis=1))[:, None]"),
    ),
    mutant(
        "login: digits in any order",
        "fewer recordings are enough for all questions",
        f"{PROTOCOL_TESTS}::test_other_digits_and_another_order_are_rejected",
        (PROTOCOL, "self.digits[at].reshape(-1)", "self.digits[np.sort(at)].reshape(-1)"),
    ),
    mutant(
        "login: secrets of one bit bind rows",
        "a client moves its score",
        f"{PROTOCOL_TESTS}::test_the_secrets_that_bind_rows_are_of_full_length_and_of_one_part",
        (PROTOCOL, "uniform_residues(2 * parts).reshape(parts, 2)", "uniform_residues(2 * parts, 1).reshape(parts, 2)"),
    ),
    mutant(
        "login: labels whose lowest bit says what they are",
        "a client sees which part failed",
        f"{PROTOCOL_TESTS}::test_the_lowest_bit_of_a_label_does_not_say_what_it_is",
        (
            PROTOCOL,
            "    drawn[:, 1, 0] = (drawn[:, 1, 0] & 0xFE) | (~drawn[:, 0, 0] & 1)",
            "    drawn[:, 0, 0] &= 0xFE\n    drawn[:, 1, 0] |= 1",
        ),
    ),
    mutant(
        "login: the time not looked at",
        "speech is made at leisure",
        f"{PROTOCOL_TESTS}::test_a_late_answer_is_a_no_in_the_same_messages",
        (PROTOCOL, "        return accepted and in_time", "        return accepted"),
    ),
    mutant(
        "login: templates as they are",
        "whoever steals the store has everybody's voice",
        f"{SERVICE_TESTS}::test_a_stolen_store_tells_no_template",
        (SEAL, "seal_under(key, plain, _bound(name, space))", "bytes(SEAL_BYTES) + plain"),
        (SEAL, "open_under(key, sealed, _bound(name, space))", "sealed[SEAL_BYTES:]"),
    ),
    mutant(
        "login: a template for any name",
        "who has an account is let in by another's name, if it can write the store",
        f"{SERVICE_TESTS}::test_what_is_sealed_opens_by_its_key_for_its_name_alone",
        (SEAL, 'f"ppspeech login {space} {name}"', 'f"ppspeech login {space}"'),
    ),
    mutant(
        "login: attempts counted after they failed",
        "whoever hangs up chooses its digits",
        f"{SERVICE_TESTS}::test_failures_are_counted_and_forgiven",
        (ACCOUNTS, "SET failed = failed + 1, last = ?", "SET failed = failed, last = ?"),
    ),
    mutant(
        "login: a wrong key is told",
        "a stranger learns who has an account",
        f"{SERVICE_TESTS}::test_a_wrong_key_and_an_unknown_name_are_refused_alike",
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
        f"{SERVICE_TESTS}::test_the_log_has_neither_names_nor_templates_nor_scores",
        (
            SERVED,
            'extra={FIELDS: {"session": visitor.session, "accepted": accepted}}',
            'extra={FIELDS: {"session": visitor.session, "accepted": accepted, "name": name}}',
        ),
    ),
    mutant(
        "login: thresholds below what is common to all",
        "a client without a voice is let in by the names of people like everybody",
        f"{SERVICE_TESTS}::test_strangers_pass_at_the_rate_and_what_is_common_for_nobody",
        (
            "service/login/thresholds.py",
            "max(usual, float(common @ template) + COMMON_MARGIN)",
            "usual",
        ),
    ),
    mutant(
        "login: keys that others read",
        "whoever has an account on the device has the key",
        f"{SERVICE_TESTS}::test_keys_are_files_of_their_owner_alone",
        (KEYS, "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)", "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)"),
    ),
]
