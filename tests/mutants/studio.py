"""Mutants of the studio: who may ask it, and what is left of what it started."""

from tests.mutants.mutant import mutant

GUARD, JOBS, CHOICES = "studio/guard.py", "studio/jobs.py", "studio/choices.py"
TESTS, JOB_TESTS = "tests/studio/test_guard.py", "tests/studio/test_jobs.py"

STUDIO = [
    mutant(
        "studio: no token",
        "whoever is on this machine trains, and reads what models and runs there are",
        f"{TESTS}::test_without_the_token_nothing_is_told {TESTS}::test_without_the_token_nothing_is_started",
        (GUARD, "if not self.is_token(shown.removeprefix(BEARER) if shown.startswith(BEARER) else None):", "if False:"),
    ),
    mutant(
        "studio: the token in what browsers send by themselves",
        "whoever has another port of this host is sent the token, and trains in somebody's name",
        f"{TESTS}::test_the_token_is_taken_from_its_header_alone",
        (
            GUARD,
            'headers.get("authorization", "")',
            'headers.get("authorization", BEARER + headers.get("cookie", "").rpartition("=")[2])',
        ),
    ),
    mutant(
        "studio: everything is public",
        "whoever is on this machine reads what models and runs there are",
        f"{TESTS}::test_without_the_token_nothing_is_told",
        ("studio/app.py", 'public = {"/", *', 'public = {"/", "/api/models", *'),
    ),
    mutant(
        "studio: tokens compared letter by letter",
        "how long a refusal takes tells how many letters of a guess are right",
        f"{TESTS}::test_tokens_are_compared_in_constant_time",
        (
            GUARD,
            'hmac.compare_digest(given[:MOST_SENT].encode(errors="replace"), self._token)',
            'given[:MOST_SENT].encode(errors="replace") == self._token',
        ),
    ),
    mutant(
        "studio: any name",
        "a stranger's name that points here makes its pages the studio's own",
        f"{TESTS}::test_another_name_is_refused",
        (GUARD, 'if headers is None or headers.get("host") not in self.hosts:', "if headers is None:"),
    ),
    mutant(
        "studio: pages of any host",
        "a page that someone looks at asks in their name",
        f"{TESTS}::test_another_page_may_not_ask",
        (GUARD, """if origin not in (None, f"http://{headers['host']}"):""", "if False:"),
    ),
    mutant(
        "studio: who does not say where it is from",
        "a form of another page starts what it likes",
        f"{TESTS}::test_another_page_may_not_ask "
        f"{TESTS}::test_a_page_that_does_not_say_where_it_is_from_changes_nothing",
        (GUARD, 'return None if method != "POST" or is_ours else', "return None if True else"),
    ),
    mutant(
        "studio: scripts inside pages",
        "a name of a bundle that is markup runs as a script, and speaks for whoever looks",
        f"{TESTS}::test_every_answer_has_the_policy",
        (GUARD, "script-src 'self' 'wasm-unsafe-eval'", "script-src 'self' 'unsafe-inline'"),
    ),
    mutant(
        "studio: pages speak to anyone",
        "a script that got in sends what the microphone hears wherever it likes",
        f"{TESTS}::test_every_answer_has_the_policy",
        (GUARD, """speaks_to = " ".join(("'self'", *sockets))""", """speaks_to = "*" """),
    ),
    mutant(
        "studio: pages speak to where a name points",
        "whoever names a bundle chooses whom the page asks, in place of the server that runs for it",
        f"{JOB_TESTS}::test_pages_speak_to_the_server_and_not_to_where_a_name_points",
        ("studio/app.py", r"(127\.0\.0\.1:[0-9]{1,5})", "([0-9.]+:[0-9]{1,5})"),
    ),
    mutant(
        "studio: for every machine",
        "whoever is on the network tries tokens, and reads pages that go by",
        f"{TESTS}::test_it_listens_for_this_machine_alone",
        ("studio/run.py", "if not address.is_loopback:", "if False:"),
    ),
    mutant(
        "studio: any run",
        "a page names a folder anywhere, and its checkpoint is released",
        "tests/studio/test_choices.py::test_runs_are_found_by_their_own_name_alone",
        ("studio/runs.py", "    if name not in known:", '    if name not in known and "/" not in name:'),
        ("studio/runs.py", "    return known[name]", "    return known.get(name, work / kind / name)"),
    ),
    mutant(
        "studio: any word for a choice",
        "a page names any folder as a corpus, or an option in place of a name",
        "tests/studio/test_choices.py::test_what_may_not_be_asked_is_refused_in_words_and_leaves_nothing",
        (CHOICES, "if not isinstance(value, str) or value not in known:", "if not isinstance(value, str):"),
    ),
    mutant(
        "studio: what nobody watches goes on",
        "a page that is closed leaves a server that offers the model",
        f"{JOB_TESTS}::test_what_nobody_watches_is_stopped",
        (JOBS, 'if job.state == "running" and job.forgotten:', "if False:"),
    ),
    mutant(
        "studio: the token on a command line",
        "whoever is on this machine reads it in the list of processes, and trains in somebody's name",
        f"{TESTS}::test_no_command_line_has_the_token",
        ("cli/studio.py", "webbrowser.open(entrance_file(opened, own).as_uri())", "webbrowser.open(opened.entrance)"),
    ),
    mutant(
        "studio: what it started outlives it",
        "a studio that was killed leaves a server that offers the model to whoever is on this machine",
        f"{JOB_TESTS}::test_a_server_ends_with_a_studio_that_was_killed",
        ("studio/command.py", "end_with(int(sys.argv.pop(1)))", "sys.argv.pop(1)"),
    ),
    mutant(
        "studio: a terminal that is closed leaves what was started",
        "a server that offers the model, and what was trained, stay behind",
        f"{JOB_TESTS}::test_ctrl_c_leaves_nothing",
        ("studio/run.py", "*((signal.SIGHUP,) if hangs_up else ())", ""),
    ),
    mutant(
        "studio: its server is forgotten behind what others make it log",
        "any page that someone looks at takes the page Speak away, by questions that are refused",
        f"{JOB_TESTS}::test_a_server_is_found_however_much_it_has_logged",
        ("studio/app.py", "for line in job.first if", "for line in job.lines if"),
    ),
]
