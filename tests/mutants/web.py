"""Mutants of the door for pages."""

from tests.mutants.mutant import mutant

DOOR, STREAM, TESTS = "network/web/door.py", "network/web/stream.py", "tests/network/test_web.py"

WEB = [
    mutant(
        "web: pages of any host may ask",
        "a page that someone looks at asks in their name",
        f"{TESTS}::test_handshakes {TESTS}::test_a_page_of_another_host_is_refused_over_tls_too",
        (DOOR, "return origin is None or origin in (own, *self.origins)", "return True or origin in own"),
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
]
