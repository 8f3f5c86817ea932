"""Mutants of what servers share in a database. Their tests need a PostgreSQL, and are skipped where there is none."""

from tests.mutants.mutant import mutant

ACCOUNTS = "service/login/accounts.py"
ADDRESS = "service/store/address.py"
PLACE = "service/store/place.py"
POSTGRES = "service/store/postgres.py"
SEAL = "service/store/seal.py"
TESTS = "tests/service/test_store.py"

STORE = [
    mutant(
        "store: templates as they are",
        "whoever has the database has everybody's voice",
        f"{TESTS}::test_a_database_sees_no_name_and_no_template",
        (PLACE, "return place.seal.seal(data, about) if isinstance(place, PostgresStore) else data", "return data"),
        (PLACE, "return place.seal.open(data, about) if isinstance(place, PostgresStore) else data", "return data"),
    ),
    mutant(
        "store: names as they are",
        "whoever has the database knows who has asked, and who is enrolled",
        f"{TESTS}::test_a_database_sees_no_name_and_no_template",
        (PLACE, "return place.seal.tag(name, *where) if isinstance(place, PostgresStore) else name", "return name"),
    ),
    mutant(
        "store: one tag for a name everywhere",
        "a database sees that somebody who asks here is enrolled there",
        f"{TESTS}::test_a_database_does_not_see_who_is_the_same_elsewhere",
        (SEAL, "json.dumps([*where, name])", "json.dumps([name])"),
    ),
    mutant(
        "store: rows that can be moved",
        "a database gives one person another's place",
        f"{TESTS}::test_a_row_that_a_database_changes_is_not_used",
        (SEAL, "_encrypt(plain, about.encode(), nonce", '_encrypt(plain, b"", nonce'),
        (SEAL, "bytes(sealed[_NONCE:]), about.encode(), bytes", 'bytes(sealed[_NONCE:]), b"", bytes'),
    ),
    mutant(
        "store: templates of log-ins that a database may write",
        "whoever runs the database puts a template of its own in anybody's place, and is let in as they",
        f"{TESTS}::test_a_database_does_not_let_people_in",
        (ACCOUNTS, "row = sealed(self._place, template, self._about(name))", "row = template"),
        (
            ACCOUNTS,
            "return opened(self._place, found[0][0], self._about(name)) if found else None",
            "return found[0][0] if found else None",
        ),
    ),
    mutant(
        "store: templates of log-ins that a database may move",
        "whoever runs the database gives one name another's template",
        f"{TESTS}::test_a_database_does_not_let_people_in",
        (ACCOUNTS, 'return f"accounts {self._space} {name}"', 'return "accounts"'),
    ),
    mutant(
        "store: transactions that see one another's past",
        "two servers spend one query twice",
        f"{TESTS}::test_transactions_are_alone_whatever_they_are_about",
        (POSTGRES, "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN"),
    ),
    mutant(
        "store: no receipt asked for",
        "a count whose end was not heard counts twice",
        f"{TESTS}::test_a_count_whose_end_was_not_heard_counts_once",
        (POSTGRES, 'return bool(state == "committed")', "return False"),
    ),
    mutant(
        "store: what is not known is a yes",
        "a question is answered that was not paid for",
        f"{TESTS}::test_what_cannot_be_known_is_not_spent",
        (
            POSTGRES,
            "            time.sleep(PAUSE_SECONDS)\n        raise StoreLostError(",
            "            time.sleep(PAUSE_SECONDS)\n        return True\n        raise StoreLostError(",
        ),
    ),
    mutant(
        "store: any key",
        "a server with another key begins budgets anew",
        f"{TESTS}::test_another_key_is_refused",
        (POSTGRES, "if held != seal.fingerprint:", "if not held:"),
    ),
    mutant(
        "store: TLS left out",
        "whoever is on the way reads the password and the counts",
        f"{TESTS}::test_tls_that_is_asked_for_is_not_left_out",
        (ADDRESS, '        if self.tls == "disable":', "        if self.tls:"),
    ),
    mutant(
        "store: any authority for any name",
        "whoever has a certificate of their own name poses as the database, and gets the password",
        f"{TESTS}::test_what_is_no_address_is_refused_without_its_password",
        (ADDRESS, 'if ("sslrootcert" in files) != (tls == "verify-ca") and', 'if "sslrootcert" in files and'),
    ),
    mutant(
        "store: a password that is printed",
        "whoever reads the log has the database",
        f"{TESTS}::test_addresses",
        (ADDRESS, "password: str | None = field(default=None, repr=False)", "password: str | None = None"),
    ),
    mutant(
        "store: a password on the command line",
        "everybody on the machine has the database",
        f"{TESTS}::test_a_password_on_a_command_line_is_refused",
        (ADDRESS, '@", text) or "password=" in text:', '@", text) and not text:'),
    ),
    mutant(
        "store: answers that are not counted",
        "whoever keeps the database from a server has the model",
        f"{TESTS}::test_what_cannot_be_counted_is_not_answered",
        (
            "service/server/session.py",
            "            send_ready(channel, False, NOT_NOW)\n            continue\n",
            "            will_answer, left = True, None\n",
        ),
    ),
]
