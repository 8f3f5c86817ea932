"""Mutants of searches as they are served: what a server may learn, what a client may ask for and must be shown."""

from tests.mutants.mutant import mutant

CLIENT, SERVER, TERMS = (f"service/{room}/spotting.py" for room in ("client", "server", "tasks"))
ARCHIVE, SEEK = "service/archive.py", "service/seek.py"
OVER_TLS = "tests/service/test_spotting.py"

PATCHES, BY_PATCHES = "service/patches.py", "tests/service/test_patches.py"

SPOTTING = [
    mutant(
        "patches: free pages",
        "an archive is asked until it is known",
        f"{BY_PATCHES}::test_a_page_is_a_query_and_paid_before_it_is_answered",
        (
            SERVER,
            'Handler(patches, orders=("frames",), steps=PatchSizes(terms))',
            'Handler(patches, orders=("frames",), is_query=False, steps=PatchSizes(terms))',
        ),
    ),
    mutant(
        "patches: a page that was found ends the session",
        "a server that spoils a place learns whether there was one",
        f"{BY_PATCHES}::test_what_is_opened_does_not_change_what_is_sent",
        (
            CLIENT,
            "                    told += ask_patches(met, question, engine)\n",
            "                    told += ask_patches(met, question, engine)\n"
            "                    places_in_archive(replace(terms, pieces=(len(told),), recordings=()), size, told)\n",
        ),
    ),
    mutant(
        "patches: pages of any size",
        "one request takes all the memory of a server",
        f"{BY_PATCHES}::test_no_question_takes_more_than_a_session_has_memory_for",
        (TERMS, "    if grid.patches * pieces * recordings > PAGE_FITS:", "    if grid.patches > PAGE_FITS:"),
    ),
    mutant(
        "patches: a word that others read",
        "whoever has an account on the machine knows what is looked for, and whose voice it is",
        f"{BY_PATCHES}::test_a_word_is_a_private_file_that_comes_back",
        (PATCHES, "atomic_write(path, private=True)", "atomic_write(path)"),
    ),
    mutant(
        "patches: a word of any numbers",
        "sums of a forged word are no numbers",
        f"{BY_PATCHES}::test_a_forged_word_is_refused",
        (PATCHES, "if not all(np.isfinite(each).all() for each in arrays.values()):", "if False:"),
    ),
    mutant(
        "patches: words in what pads a recording",
        "a word is found where nothing was said",
        f"{BY_PATCHES}::test_nothing_is_found_where_a_recording_is_padded",
        (PATCHES, "level = max(silence, *peaks[allowed : allowed + 1])", "level = -99.0"),
    ),
    mutant(
        "spot: what was found ends the session",
        "a server that spoils a segment learns whether there was one",
        f"{OVER_TLS}::test_what_is_opened_does_not_change_what_is_sent",
        (
            CLIENT,
            "                found = ask(met, own, engine)\n",
            "                found = ask(met, own, engine)\n                check_found(shape, found)\n",
        ),
    ),
    mutant(
        "spot: as many recordings as there are",
        "the server learns how many recordings a client has, not up to a power of two",
        f"{OVER_TLS}::test_how_many_recordings_we_have_is_seen_up_to_a_power_of_two_and_how_long_in_blocks",
        (CLIENT, "next(size for size in terms.together if size >= len(heard))", "len(heard)"),
        (TERMS, "tuple(2**power for power in range(MOST_TOGETHER.bit_length()))", "tuple(range(1, 65))"),
    ),
    mutant(
        "spot: free queries",
        "an archive is asked until it is known",
        f"{OVER_TLS}::test_a_search_is_a_query_and_paid_before_it_is_answered",
        (
            SERVER,
            "Handler(spell, orders=WAYS, steps=Sizes(terms, spelled=True))",
            "Handler(spell, orders=WAYS, is_query=False, steps=Sizes(terms, spelled=True))",
        ),
    ),
    mutant(
        "spot: recordings for the price of one",
        "keywords are asked about until they are known",
        f"{OVER_TLS}::test_a_search_is_a_query_and_paid_before_it_is_answered",
        ("service/server/session.py", "spent = request.utterances if", "spent = 1 if"),
    ),
    mutant(
        "spot: a size that nobody wrote",
        "a request means something that nobody wrote",
        f"{OVER_TLS}::test_sizes_of_phrases_are_numbers_of_a_request",
        (TERMS, "    if packed(digits) != code:", "    if not digits:"),
        (TERMS, "not all(1 <= size <= MOST_UNITS for size in sizes)", "not sizes"),
    ),
    mutant(
        "spot: names of files",
        "a client learns what the server's files are called, where that was not chosen",
        f"{OVER_TLS}::test_names_of_files_are_told_only_where_that_was_chosen",
        (ARCHIVE, "self.contents.names if self.contents.told else ()", "self.contents.names"),
    ),
    mutant(
        "spot: examples of their own length",
        "the server learns how long an example is",
        f"{OVER_TLS}::test_two_keywords_of_one_size_look_the_same",
        (
            SEEK,
            "    return Sought(Ask.SPOT_EXAMPLE, (1,) * len(words), way, examples)",
            "    short = len(keyword[-1]) < 7_000  # type: ignore\n"
            "    if not short:\n"
            '        shape = terms.example_shape(len(words), "average")\n'
            "        examples = _by_example(terms, shape, words, rate, 0.0)\n"
            '    return Sought(Ask.SPOT_EXAMPLE, (1,) * len(words), "frames" if short else "average", examples)',
        ),
    ),
    mutant(
        "spot: an archive that others read",
        "whoever has an account on the machine has the voices",
        f"{OVER_TLS}::test_an_archive_is_a_private_file_that_comes_back",
        (ARCHIVE, "atomic_write(path, private=True)", "atomic_write(path)"),
    ),
    mutant(
        "spot: an archive of any numbers",
        "scores of a forged archive are no numbers",
        f"{OVER_TLS}::test_a_forged_archive_is_refused",
        (ARCHIVE, "given.shape != shape or not np.isfinite(given).all()", "given.shape != shape"),
    ),
    mutant(
        "spot: searches of any size",
        "a server has a client exchange as much as it likes",
        f"{OVER_TLS}::test_a_client_refuses_a_search_of_more_than_it_exchanges",
        (CLIENT, "    if size > MOST_BYTES:\n", "    if size < 0:\n"),
    ),
]
