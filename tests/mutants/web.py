"""Mutants of the door for pages."""

from tests.mutants.mutant import mutant

DOOR, STREAM, TESTS = "network/web/door.py", "network/web/stream.py", "tests/network/test_web.py"
TRANSPORT, PINNED = "network/web/transport.py", "tests/network/test_webtransport.py"

WEB = [
    mutant(
        "web: pages of any host may ask",
        "a page that someone looks at asks in their name",
        f"{TESTS}::test_handshakes {TESTS}::test_a_page_of_another_host_is_refused_over_tls_too",
        (DOOR, "return origin is None or origin in (own, *origins)", "return True or origin in own"),
    ),
    mutant(
        "web: any name on a plain door",
        "a stranger's name that points here makes its pages this host's own",
        f"{TESTS}::test_handshakes",
        (DOOR, "if host is None or not (secure or self._is_ours(host)):", "if host is None:"),
    ),
    mutant(
        "web: messages of any size",
        "a client takes all the memory of its session before its first byte is looked at",
        f"{TESTS}::test_frames_that_may_not_come",
        (STREAM, "max_size=largest + HEADER.size", "max_size=None"),
    ),
    mutant(
        "web: as much before a session as in it",
        "who has said nothing yet makes the server keep as much as it likes",
        f"{TESTS}::test_before_a_session_little_is_taken",
        (STREAM, "        if self._raw > self._most:", "        if False:"),
    ),
    mutant(
        "web: plain pages anywhere",
        "whoever is on the way reads what is asked, and sends another script",
        f"{TESTS}::test_plain_pages_are_for_loopback",
        (
            "network/server/server.py",
            "for each in (address, *(() if web is None else (web.address,))):",
            "for each in (address,):",
        ),
    ),
    mutant(
        "web: frames in the log",
        "whoever reads logs that are kept in detail has what clients sent",
        f"{TESTS}::test_no_payload_is_ever_logged",
        (STREAM, ", logger=SILENT)", ")"),
    ),
    mutant(
        "web: text is bytes too",
        "frames have two forms, of which one is never tested",
        f"{TESTS}::test_frames_that_may_not_come",
        (STREAM, "if frame.opcode is Opcode.TEXT:", "if False:"),
    ),
    mutant(
        "webtransport: pages of any host may ask",
        "a page that someone looks at asks in their name",
        f"{PINNED}::test_requests {PINNED}::test_a_page_that_is_refused_hears_nothing",
        ("network/web/transport_door.py", "if not may_ask(", "if False and not may_ask("),
    ),
    mutant(
        "webtransport: a token is good anywhere",
        "whoever writes the addresses of others on datagrams fills the server in their names",
        f"{PINNED}::test_a_token_is_good_for_one_place",
        ("network/web/calls.py", "address=source, destination_cid", 'address=("::", 0), destination_cid'),
        ("network/web/calls.py", "address=source, original_", 'address=("::", 0), original_'),
    ),
    mutant(
        "webtransport: as much before a session as in it",
        "who has said nothing yet makes the server take as much as it likes",
        f"{PINNED}::test_what_may_not_come_ends_one_session",
        (TRANSPORT, "if self._raw > self._most_raw:", "if False:"),
    ),
    mutant(
        "webtransport: as much beside a session as it likes",
        "a client takes all the memory of its session by headers that never end",
        f"{PINNED}::test_what_may_not_come_ends_one_session",
        (TRANSPORT, "if self._aside > ASIDE_BYTES:", "if False:"),
    ),
    mutant(
        "webtransport: as much ahead as it likes",
        "a client takes all the memory of its session while it does not read",
        f"{PINNED}::test_a_client_that_does_not_read",
        (TRANSPORT, "if len(self._inbox) > self._most_bytes:", "if False:"),
    ),
    mutant(
        "webtransport: a second stream",
        "frames have two ways, of which one is never tested",
        f"{PINNED}::test_what_may_not_come_ends_one_session",
        (TRANSPORT, "if self._stream not in (-1, said.stream_id):", "if False:"),
    ),
    mutant(
        "webtransport: words of others in the log",
        "whoever reads logs that are kept in detail has what clients said",
        f"{PINNED}::test_no_payload_is_ever_logged",
        (TRANSPORT, 'logging.getLogger("quic").setLevel(logging.CRITICAL + 1)', 'logging.getLogger("quic")'),
    ),
    mutant(
        "webtransport: no certificate where clients need one",
        "who may not come in by the other door comes in by this one",
        f"{PINNED}::test_where_it_may_not_be",
        (
            "network/server/server.py",
            "if transport is not None and tls is not None and tls.client_ca is not None:",
            "if False:",
        ),
    ),
    mutant(
        "webtransport: a next certificate that nobody knows",
        "pages learn of a pin when it is too late, and somebody tells them to leave it out",
        f"{PINNED}::test_the_next_certificate_is_known_long_before_it_is_shown",
        ("network/tls/short_lived.py", "while len(self._kept) < 2:", "while len(self._kept) < 1:"),
        ("network/tls/short_lived.py", "if len(kept) == before == 2:", "if len(kept) == before == 1:"),
        ("network/tls/short_lived.py", "self._kept[1].certificate", "self._kept[-1].certificate"),
        ("network/tls/short_lived.py", "begins, self.pins[1])", "begins, self.pins[-1])"),
    ),
]
