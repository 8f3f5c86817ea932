"""Mutants of what others check of releases: signatures that vouch for anything, ledgers that lose or hide an entry."""

from tests.mutants.mutant import mutant

SIGNING, LEDGER, WRITER = "bundle/releases/signing.py", "bundle/releases/ledger.py", "bundle/writer.py"

FORGERIES, CHAIN = "tests/bundle/test_forgeries.py", "tests/bundle/test_ledger.py"

RELEASES = [
    mutant(
        "release: anybody's signature",
        "a forger signs what was made up",
        FORGERIES,
        (SIGNING, "    if hint != signer:", "    if not hint:"),
        (SIGNING, 'if not str(refused).startswith("Signature mismatch"):', 'if "Key mismatch" not in str(refused):'),
    ),
    mutant(
        "release: a signature that nobody made",
        "a forger writes down digests that fit, and any bytes for a signature",
        FORGERIES,
        (SIGNING, "        except InvalidSignature:", "        except InvalidSignature:\n            return signed"),
    ),
    mutant(
        "release: a signature of other files",
        "one honest signature vouches for every bundle",
        FORGERIES,
        (SIGNING, "    if signed != found:", "    if not signed:"),
    ),
    mutant(
        "release: a signed head that is not the one signed",
        "a ledger is cut off, and its head with it",
        CHAIN,
        (
            SIGNING,
            """    if _check(head, sealed, key) != {".": digests({".": data})["."]}:""",
            "    if not _check(head, sealed, key):",
        ),
    ),
    mutant(
        "ledger: hashes that nobody compares",
        "an entry says less than was released",
        CHAIN,
        (LEDGER, "    if hashlib.sha256(line[: seal.start()]).hexdigest() != seal[1].decode():", "    if not seal[1]:"),
    ),
    mutant(
        "ledger: entries that follow anything",
        "an entry is replaced together with its hash",
        CHAIN,
        (LEDGER, "        if each.entry.previous != before:", "        if not before:"),
    ),
    mutant(
        "ledger: cut off unseen",
        "releases disappear from the end, though their head is known",
        CHAIN,
        (
            LEDGER,
            "        if number > len(self.booked):",
            "        if number > len(self.booked):\n            return\n        if number < 0:",
        ),
    ),
    mutant(
        "ledger: written anew unseen",
        "other releases stand under a head that is known",
        CHAIN,
        (LEDGER, "if number else NOTHING) != parts[2]:", "if number else NOTHING) is None:"),
    ),
    mutant(
        "ledger: an epsilon that does not follow",
        "entries state less than their events give",
        CHAIN,
        (LEDGER, "        if not same:", "        if same is None:"),
    ),
    mutant(
        "ledger: totals of the last release alone",
        "many releases are stated at the epsilon of one",
        CHAIN,
        (LEDGER, "    for each in booked:\n        for event", "    for each in booked[-1:]:\n        for event"),
    ),
    mutant(
        "ledger: any total may be exceeded",
        "more is released from a data set than was promised",
        CHAIN,
        (LEDGER, "    if not total.epsilon <= most:", "    if total.epsilon < 0:"),
    ),
    mutant(
        "ledger: totals of different units",
        "a total for speakers leaves out what was released about their parties",
        CHAIN,
        (LEDGER, "    if others:", "    if not totals:"),
        (LEDGER, "    (total,) = totals", "    total = totals[-1]"),
    ),
    mutant(
        "ledger: two add at the same time",
        "an entry is lost, and its epsilon with it",
        CHAIN,
        (
            "storage.py",
            "                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "                fcntl.flock(handle, fcntl.LOCK_SH)",
        ),
    ),
    mutant(
        "ledger: asked when it is too late",
        "what a ledger refuses is there already",
        CHAIN,
        (WRITER, "        if admit is not None:\n            admit(bundle)\n", ""),
        (
            WRITER,
            "    finally:\n        shutil.rmtree(temporary, ignore_errors=True)",
            "        if admit is not None:\n            admit(bundle)\n    finally:\n"
            "        shutil.rmtree(temporary, ignore_errors=True)",
        ),
    ),
]
