"""Mutants of heads on embeddings, of who is told, and of the second stage."""

from tests.mutants.mutant import mutant

EXPORT, WATCH, HEADS = "service/export.py", "protocols/words/watch.py", "service/client/heads.py"
IDENTIFY = "protocols/speakers/identify.py"
CONNECT, SPEAKERS = "service/client/connect.py", "service/client/speakers.py"
WAKE, BRIDGE = "service/client/wake.py", "service/client/wyoming_bridge.py"
TESTS, WAKE_TESTS, WATCH_TESTS = (
    "tests/service/test_heads.py",
    "tests/service/test_wake.py",
    "tests/protocols/test_watch.py",
)

HEADS_MUTANTS = [
    mutant(
        "heads: who spoke asked after words alone",
        "a server of voices learns that a wake word was there: it is asked only then",
        f"{WAKE_TESTS}::test_who_spoke_is_asked_whatever_the_word_was",
        (WAKE, "self._speaker()\n", "None if answer.value is None else self._speaker()\n"),
    ),
    mutant(
        "heads: reject ignored",
        "speech that is none of the words is taken for one, more often than was calibrated",
        f"{TESTS}::test_exported_heads_score_as_the_module",
        (EXPORT, "columns[-1, -1] += float(head.reject)", "columns[-1, -1] += 0.0"),
    ),
    mutant(
        "heads: vectors beyond the radius",
        "a loud voice is told another word than in the clear",
        f"{TESTS}::test_words_of_many_vectors_are_those_of_the_clear",
        (
            EXPORT,
            "replace(found.shape, radius=head.radius)",
            "replace(found.shape, radius=4 * head.radius, limit=50.0)",
        ),
    ),
    mutant(
        "heads: the outcome told to the client",
        "a client learns what the server alone was to learn",
        WATCH_TESTS,
        (WATCH, "opened = open_bits_to(engine, Side.FIRST,", "opened = open_bits_to(engine, Side.SECOND,"),
    ),
    mutant(
        "heads: every comparison told",
        "a server learns of all words how they compare",
        WATCH_TESTS,
        (
            WATCH,
            "    bits = (place[:, None] >> np.arange(shape.answer_bits)) & 1\n",
            "    bits = (place[:, None] >> np.arange(shape.answer_bits)) & 1\n"
            "    open_bits_to(engine, Side.FIRST, won.astype(np.uint8))\n",
        ),
    ),
    mutant(
        "heads: a key for questions without end",
        "a server that is told words reads the client's key, and with it all that was asked",
        f"{TESTS}::test_a_server_that_is_told_has_each_key_for_so_many_bits",
        (CONNECT, "if self._session.told + told > LatticeParameters().leakable_bits:", "if not told:"),
    ),
    mutant(
        "heads: more questions under a key than it can lose bits",
        "a server that is told words reads the client's key in one preparation",
        "tests/protocols/test_key_life.py::test_what_a_server_is_told_may_be_of_the_clients_key_and_is_bounded",
        (WATCH, 'return MOST_STEPS if told == "client" else', "return MOST_STEPS if told else"),
    ),
    mutant(
        "heads: listening that is not counted",
        "a server that is told words reads the client's key while somebody listens",
        f"{TESTS}::test_a_server_that_is_told_has_each_key_for_so_many_bits",
        (HEADS, "self._client.session(meet_as_client, told=bits)", "self._client.session(meet_as_client)"),
    ),
    mutant(
        "crowds: a key for names without end",
        "a server that is told places reads the client's key, and with it every voice it asked with",
        "tests/service/test_crowds.py::test_a_name_may_be_the_servers",
        (SPEAKERS, 'told = self._terms.places.bit_length() if self._terms.names == "server" else 0', "told = 0"),
    ),
    mutant(
        "speakers: a key for names without end",
        "a server that is told names of a few people reads the client's key, and with it every voice it asked with",
        "tests/service/test_speaker_scoring.py::test_names_may_be_the_servers",
        (SPEAKERS, 'if self._terms.names == "server" else', 'if self._terms.scoring == "crowd" else'),
    ),
    mutant(
        "speakers: a server is told more than a place",
        "a server that cheats reads bits of the voice, and of the key, in place of a name's",
        "tests/protocols/test_speaker_identification.py::test_a_server_is_told_as_many_bits_as_name_a_place",
        (IDENTIFY, "masked.in_ring(Ring(job.told)).open_to", "masked.open_to"),
    ),
    mutant(
        "crowds: who is new is taken in by nobody",
        "sessions of a crowd that grows need more memory than they may have, and nobody is named any more",
        "tests/service/test_crowds.py::test_who_comes_is_encoded_once_and_not_by_every_session",
        ("network/server/server.py", "                refresh()\n", "                pass\n"),
    ),
    mutant(
        "crowds: a session keeps whomever it takes in",
        "whoever enrolls many ends the sessions that are open",
        "tests/service/test_crowds.py::test_who_comes_is_encoded_once_and_not_by_every_session",
        ("service/server/linear_scoring.py", "self._own.room = KEPT_BLOCKS", "self._own.room = None"),
    ),
    mutant(
        "crowds: a store that is waited for",
        "while the database is gone nobody is let in, whatever they ask for",
        "tests/service/test_crowds.py::test_a_store_that_is_not_there_is_not_waited_for",
        ("service/server/speakers.py", " and self.gallery.is_up():", ":"),
    ),
    mutant(
        "crowds: a key for claims without end",
        "a server that is told decisions reads the client's key, and with it every voice it asked with",
        "tests/service/test_crowds.py::test_a_decision_may_be_the_servers",
        (SPEAKERS, 'told = int(self._terms.decision == "server")', "told = 0"),
    ),
    mutant(
        "heads: told without consent",
        "a server learns the words of a client that did not agree",
        f"{TESTS}::test_nothing_is_asked_without_consent",
        (HEADS, "        if self._terms.outcome != client.outcome:\n", "        if not self._terms.outcome:\n"),
    ),
    mutant(
        "heads: outcomes that others read",
        "whoever has an account on the server's machine reads what was said",
        f"{TESTS}::test_the_server_alone_learns_the_word_where_both_agreed",
        ("service/server/stores.py", "os.O_APPEND, 0o600)", "os.O_APPEND, 0o644)"),
    ),
    mutant(
        "heads: quiet windows left out",
        "a server that is not asked knows that nobody speaks",
        f"{TESTS}::test_what_is_said_does_not_show_while_listening",
        (
            HEADS,
            "        for vector in self._live.feed(samples):\n",
            "        for vector in self._live.feed(samples) if samples.any() else ():\n",
        ),
    ),
    mutant(
        "heads: a second stage that rests after a word",
        "a server reads from when it is asked whether it was the word",
        f"{WAKE_TESTS}::test_when_it_asks_does_not_depend_on_what_was_answered",
        (
            WAKE,
            "        spent, speaker = answer.seconds",
            "        self._rests += WAKE_RATE * (answer.value is not None)\n        spent, speaker = answer.seconds",
        ),
    ),
    mutant(
        "heads: no first stage",
        "a server is asked about all that is said at home",
        f"{WAKE_TESTS}::test_nothing_is_asked_where_nothing_fires",
        (WAKE, "fires = self._first.hears(step) and", "fires = self._first.hears(step) or"),
    ),
    mutant(
        "heads: payloads of any length",
        "whoever connects over Wyoming fills the memory",
        f"{WAKE_TESTS}::test_events_that_cannot_be_are_refused",
        (BRIDGE, "or not 0 <= given <= most:", "or not 0 <= given:"),
    ),
    mutant(
        "heads: Wyoming for everybody",
        "sound that is not encrypted is taken from other machines",
        f"{WAKE_TESTS}::test_commands_that_cannot_be_met_say_why",
        (BRIDGE, "if not (self.address.is_loopback or anyone):", "if self.address.port < 0:"),
    ),
]  # fmt: skip
