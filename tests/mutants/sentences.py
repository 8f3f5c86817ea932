"""Mutants of sentences as they are served: what a server may learn, what a client may ask for and must be shown."""

from tests.mutants.mutant import mutant

CLIENT, TERMS = "service/client/sentences.py", "service/tasks/sentences.py"
OVER_TLS = "tests/service/test_sentences.py"

SENTENCES = [
    mutant(
        "sentence: the length to the frame",
        "the server learns how long was spoken, not in steps alone",
        OVER_TLS,
        (TERMS, "STEP = 32\n", "STEP = 1\n"),
    ),
    mutant(
        "sentence: what was heard ends the session",
        "a server that spoils a record learns whether a word ended there",
        OVER_TLS,
        (
            CLIENT,
            "heard = transcribe(met, shape, frames, engine)",
            "heard = check_heard(shape, transcribe(met, shape, frames, engine))",
        ),
    ),
    mutant(
        "sentence: what was heard decides whether more is asked",
        "a server that spoils a record learns whether a word ended there",
        OVER_TLS,
        (CLIENT, "        return answer, heard\n", "        return answer, check_heard(shape, heard)\n"),
    ),
    mutant(
        "sentence: any number of steps",
        "a client is told to go on with what there is no model for",
        OVER_TLS,
        ("service/server/session.py", "    if request.steps not in handler.steps:", "    if request.steps < 0:"),
    ),
    mutant(
        "sentence: requests of no length",
        "a request means something that nobody wrote",
        "tests/service/test_service.py",
        (
            "service/requests.py",
            "        if (what in MEASURED and not steps) or (steps and what not in {*MEASURED, Ask.STREAM}):",
            "        if steps and what == Ask.PING:",
        ),
    ),
    mutant(
        "sentence: free queries",
        "a model is asked until it is known",
        OVER_TLS,
        (
            "service/server/sentences.py",
            "Handler(sentence, orders=terms.modes, steps=terms.steps)}",
            "Handler(sentence, orders=terms.modes, is_query=False, steps=terms.steps)}",
        ),
    ),
    mutant(
        "sentence: words of any bytes",
        "a server writes on the client's screen what it likes",
        OVER_TLS,
        (
            "bundle/strict_json.py",
            "    if hint is str and not (may_be_empty and not value):",
            "    if hint is str and not may_be_empty:",
        ),
    ),
    mutant(
        "sentence: graphs of any size",
        "an offer takes a client's memory and hours of its time",
        "tests/protocols/test_sentence.py",
        ("protocols/sentences/shape.py", "MOST_CELLS = 1 << 22", "MOST_CELLS = 1 << 62"),
    ),
    mutant(
        "sentence: any number of bytes",
        "a server has a client exchange what it likes",
        OVER_TLS,
        (CLIENT, "        if size > MOST_BYTES:", "        if size < 0:"),
    ),
    mutant(
        "sentence: back-offs that exclude nothing",
        "words that the language model calls rare are heard, and differ from those in the clear",
        "tests/service/test_sentence_graphs.py tests/models/test_word_graph.py",
        (
            "models/decoding/graph.py",
            "harmless = all(way.target == by.target and way.log_weight >= by.log_weight for way, by in again)",
            "harmless = all(True for way, by in again)",
        ),
    ),
    mutant(
        "sentence: tables of any size",
        "a server has a client hold gigabytes until it has spoken",
        "tests/service/test_sentence_graphs.py",
        (CLIENT, "not fits_garbled(shape, MOST_BYTES)", "not shape"),
    ),
    mutant(
        "sentence: encoders of any size",
        "an offer takes a client's memory and time",
        "tests/audio/test_encoder.py",
        (
            "audio/public_encoder.py",
            "wanted > MOST_NUMBERS or len(self.numbers) != wanted",
            "len(self.numbers) != wanted",
        ),
    ),
    mutant(
        "sentence: encoders of what is no number",
        "an offer makes every frame of a client the same, or none",
        "tests/audio/test_encoder.py",
        ("audio/public_encoder.py", "math.isfinite(number) and abs(number) <= LARGEST for number", "True for number"),
    ),
    mutant(
        "sentence: encoders of private speech",
        "what was learned from people leaves with a front end that is called public",
        "tests/service/test_encoder.py",
        ("data/datamodule.py", '{*self.normalization, *self.encoded_by} - {"synthetic"}', "{*self.normalization}"),
    ),
    mutant(
        "sentence: sessions on any terms",
        "client and server mean different models, and a wrong answer looks right",
        OVER_TLS,
        (TERMS, "hashlib.sha256(canonical(to_plain(self)))", 'hashlib.sha256(canonical({"terms": "any"}))'),
    ),
]
