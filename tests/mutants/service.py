"""Mutants of the network and the service."""

from tests.mutants.mutant import mutant

SERVER_TESTS = "tests/network/test_server.py"

SERVICE = [
    mutant(
        "decisions for the server on shares that can be shifted",
        "a client logs in as anybody",
        "tests/service/test_speaker_scoring.py",
        (
            "service/server/speakers.py",
            'if self.decision == "server":\n            return "hardened"',
            'if self.decision == "server":\n            return "linear"',
        ),
    ),
    mutant(
        "thresholds below what is common to all",
        "a client without a voice is accepted as nearly anybody",
        "tests/service/test_speaker_scoring.py",
        (
            "service/server/linear_scoring.py",
            "np.maximum(rare, cosines_of(beyond.clip(max=bits), bits))",
            "rare",
        ),
    ),
    mutant(
        "places in the order of enrollment",
        "who enrolls learns how many are enrolled",
        "tests/service/test_speakers.py",
        ("service/server/stores.py", "DRAWS = 32", "DRAWS = 0"),
        ("service/server/stores.py", "secrets.choice(free)", "free[0]"),
    ),
    mutant(
        "a kept utterance asked about when it begins",
        "the server learns how long was spoken",
        "tests/service/test_service.py",
        (
            "service/client/words.py",
            "            listening = BufferedListening(",
            "            self._client.session(meet_as_client)._ping()\n            listening = BufferedListening(",
        ),
    ),
    mutant(
        "m30 a group's caller not verified",
        "anyone with a certificate is let in as anybody",
        "tests/network/test_group.py",
        ("network/group/identity.py", "    check_pin(der, pin)  #", "    #"),
    ),
    mutant(
        "m31 what a caller signed is not verified",
        "a recorded certificate is enough",
        "tests/network/test_group.py",
        ("network/group/identity.py", "        key.verify(signature, message, ECDSA)", "        pass"),
    ),
    # Network and service.
    mutant(
        "m16 the pin not checked",
        "anyone may be the server",
        "tests/network/test_tls.py",
        (
            "network/tls/certificates.py",
            "if der is None or not hmac.compare_digest(hashlib.sha256(der).hexdigest(), pin):",
            "if der is None:",
        ),
    ),
    mutant(
        "m25 key files that others read",
        "whoever has an account has the key",
        "tests/network/test_tls.py",
        (
            "network/tls/certificates.py",
            "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)",
            "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)",
        ),
    ),
    mutant(
        "m26 older versions of TLS",
        "downgrades",
        "tests/network/test_tls.py",
        (
            "network/tls/context.py",
            "ssl.PROTOCOL_TLS_CLIENT)\n        context.minimum_version = ssl.TLSVersion.TLSv1_3",
            "ssl.PROTOCOL_TLS_CLIENT)\n        context.minimum_version = ssl.TLSVersion.TLSv1_2",
        ),
    ),
    mutant(
        "m27 frames of another session taken",
        "replays",
        "tests/network/test_frames.py tests/network/test_channels.py",
        ("network/channel/frames.py", "if got_session != session and not (", "if got_session is None and not ("),
    ),
    mutant(
        "m17 the budget not spent",
        "any number of queries",
        "tests/service/test_budget.py",
        ("service/server/stores.py", "                used += queries\n", "                used += 0\n"),
    ),
    mutant(
        "m29 the budget spent after the answer",
        "a client looks at part of an answer and hangs up, for nothing",
        "tests/service/test_budget.py",
        (
            "service/server/session.py",
            "will_answer, left = budget.spend(model, visitor.client, spent)",
            "will_answer, left = (left := budget.left(model, visitor.client)) is None or left > 0, left",
        ),
        (
            "service/server/session.py",
            "        handler.answer(record, request)\n",
            "        handler.answer(record, request)\n        budget.spend(model, visitor.client, spent)\n",
        ),
    ),
    mutant(
        "every IPv6 address is a client",
        "one subscriber has 2^64 budgets",
        "tests/service/test_budget.py",
        ("service/server/book.py", 'f"address:{neighborhood(peer.address)}"', 'f"address:{peer.address}"'),
    ),
    mutant(
        "every newcomer has a row of its own",
        "whoever has many addresses fills the disk, and has as many budgets",
        "tests/service/test_budget.py",
        ("service/server/stores.py", "ask(_CLIENTS, model)[0][0] >= MOST_CLIENTS", "ask(_CLIENTS, model)[0][0] < 0"),
    ),
    mutant(
        "tables that others read",
        "whoever has an account has everyone's templates",
        "tests/test_storage.py",
        ("storage.py", "os.O_CREAT | os.O_RDWR, 0o600)", "os.O_CREAT | os.O_RDWR, 0o644)"),
    ),
    mutant(
        "one address may have all sessions",
        "it holds the server shut for everybody else",
        SERVER_TESTS,
        ("network/server/server.py", "if held[each.who] < capacity.for_one]", "if held[each.who] >= 0]"),
    ),
    mutant(
        "one address may have all handshakes",
        "it holds the server shut for everybody else",
        SERVER_TESTS,
        (
            "network/server/server.py",
            "if stalling[each.who] < capacity.stalling_for_one]",
            "if stalling[each.who] >= 0]",
        ),
    ),
    mutant(
        "any time between HELLO and the first message",
        "who says HELLO and no more holds a place for an hour",
        SERVER_TESTS,
        (
            "network/server/worker.py",
            "channel.expect_within(capacity.opening_seconds, lambda",
            "channel.expect_within(3600.0, lambda",
        ),
    ),
    mutant(
        "who stalls never gives way",
        "a few addresses hold all handshakes",
        SERVER_TESTS,
        ("network/server/server.py", "        if self._ready:\n            self._hurry(now)\n", ""),
    ),
    mutant(
        "who begins again and again has a process each time",
        "garbage, which costs nothing, keeps the server busy with processes",
        SERVER_TESTS,
        (
            "network/server/server.py",
            "if self._tries.left(each.who, now) >= 1]",
            "if self._tries.left(each.who, now) > -1e9]",
        ),
    ),
    mutant(
        "a full waiting room refuses the last to come",
        "a crowd from one address keeps everybody out",
        SERVER_TESTS,
        ("network/server/server.py", "        most = max(waiting.values())", "        most = min(waiting.values())"),
    ),
    mutant(
        "our certificate shown before the pin is checked",
        "an impostor learns who called",
        "tests/network/test_tls.py",
        (
            "network/tls/context.py",
            "own = None if self.pin is not None and pinned is None else self.certificate",
            "own = self.certificate",
        ),
    ),
    mutant(
        "whoever comes first is the other party",
        "a stranger takes part in our protocol",
        "tests/network/test_tls.py",
        (
            "network/tls/listener.py",
            "        if not hmac.compare_digest(channel.receive(TICKET, len(ticket)), ticket):",
            "        if not channel.receive(TICKET, len(ticket)):",
        ),
    ),
    mutant(
        "callers are greeted one after another",
        "a stranger who stalls keeps a group from meeting",
        "tests/network/test_group.py",
        (
            "network/tls/listener.py",
            "threading.Thread(target=self._receive, args=(self._number, connection), daemon=True).start()",
            "self._receive(self._number, connection)",
        ),
    ),
    mutant(
        "control characters reach the terminal",
        "a peer's words write over what was said",
        "tests/test_screen.py",
        ("screen.py", "yield segment if segment.control else", "yield segment if segment else"),
    ),
    mutant(
        "certificates that sign others",
        "whoever is let in lets in others, and has as many budgets as it likes",
        "tests/network/test_tls.py",
        ("network/tls/certificates.py", "x509.BasicConstraints(ca=False,", "x509.BasicConstraints(ca=True,"),
    ),
    mutant(
        "m28 sealed galleries replaced by others",
        "whoever comes replaces other people's templates",
        "tests/service/test_keeper.py tests/service/test_budget.py",
        (
            "service/server/stores.py",
            "(found and found[0][0] != whose)",
            "(found and found[0][0] is None)",
        ),
    ),
    mutant(
        "no word is refused before all is said",
        "the server learns that no word was found",
        "tests/service/test_opened.py",
        (
            "service/client/words.py",
            "return clock.answers(recognize(met, job, inputs, engine), record, order)",
            "told = recognize(met, job, inputs, engine)\n            check_told(job.shape, told)\n"
            "            return clock.answers(told, record, order)",
        ),
    ),
]
