"""Mutants of promises: units that are not checked, touches that nobody saw, bundles that say more than happened."""

from tests.mutants.mutant import mutant

STATEMENT, READER = (f"bundle/{file}.py" for file in ("statement", "reader"))
OBSERVED, ROWS, APPLY = "training/private/observed.py", "privacy/rows.py", "filters/apply.py"
BUDGET = "privacy/accounting/budget.py"

FORGERIES = "tests/bundle/test_forgeries.py"
SEEN = "tests/training/test_observed.py"

PROMISES = [
    # Units.
    mutant(
        "promise: monotone under replace",
        "a choice costs twice what it states",
        "tests/privacy/test_selection.py tests/privacy/test_sparse_vector.py",
        ("privacy/relation.py", 'if monotone and relation.adjacency == "replace":', "if monotone and not relation:"),
    ),
    mutant(
        "promise: any unit for untied rows",
        "a speaker of fifty rows is told from none, at an epsilon for one row",
        "tests/privacy/test_pca.py tests/training/test_parties_gradients.py tests/training/test_private_convex.py",
        (ROWS, "        if unit not in OWN_ROWS:", '        if unit == "nothing":'),
    ),
    mutant(
        "promise: rows of an utterance bounded one by one",
        "an utterance of five rows weighs five times what is accounted for",
        "tests/training/test_parties_gradients.py tests/training/test_private_convex.py",
        (ROWS, "    if bool((counts > 1).any()):", "    if bool((counts < 1).any()):"),
    ),
    mutant(
        "promise: rows of a speaker clipped one by one",
        "a speaker of many rows moves the sum beyond the noise",
        "tests/training/test_parties_gradients.py",
        (
            "training/together/descent.py",
            "groups if descent.unit in MANY_ROWS else None",
            "None if groups is not None else groups",
        ),
    ),
    mutant(
        "promise: noise of other terms",
        "noise for half the clip is taken for the whole",
        "tests/training/test_parties_gradients.py",
        ("training/together/descent.py", "or total.shares.sensitivity < moved:", "and total.shares.sensitivity < 0:"),
    ),
    mutant(
        "promise: a speaker's guarantee for a frame",
        "a changed frame costs twice what is stated",
        "tests/privacy/test_events.py",
        ("privacy/accounting/events.py", "    if unit not in HOLDERS[own]:", "    if unit is None:"),
    ),
    mutant(
        "promise: group privacy by k epsilon alone",
        "someone with many utterances is told less than a tenth of their epsilon",
        "tests/bundle/test_privacy_statement.py",
        (
            "privacy/mechanisms/gaussian.py",
            "        return GaussianEvent(self.noise_multiplier / size, relation)",
            "        return GaussianEvent(self.noise_multiplier / size**0.5, relation)",
        ),
    ),
    # Starts and touches.
    mutant(
        "promise: a public start that is private",
        "the start holds the recordings that the guarantee is about",
        f"{SEEN} tests/data/test_overlap.py",
        (OBSERVED, "    check_disjoint(data.corpus,", "    check_disjoint(data.corpus[:0],"),
    ),
    mutant(
        "promise: copies of files not looked for",
        "the private corpus under another name counts as public",
        "tests/data/test_overlap.py",
        ("data/overlap.py", "        if _digest(path) in known[size]:", "        if path in sizes[size]:"),
    ),
    mutant(
        "promise: early stopping unseen",
        "the number of releases tells about private speech",
        SEEN,
        (OBSERVED, 'found.append(f"{name} watched {callback.monitor}")', "continue"),
    ),
    mutant(
        "promise: the best checkpoint unseen",
        "which model is released was chosen on private speech",
        SEEN,
        (OBSERVED, "found += [] if callback.monitor is None else", "found += [] if callback.monitor != 0 else"),
    ),
    mutant(
        "promise: a run cut short unseen",
        "when somebody stopped it is not mentioned",
        SEEN,
        (OBSERVED, "    if spent != planned:", "    if spent > planned:"),
    ),
    mutant(
        "promise: callbacks of one's own unseen",
        "whatever a callback does with private speech is not mentioned",
        SEEN,
        (OBSERVED, "not isinstance(callback, ONLY_SHOW):", "isinstance(callback, ONLY_SHOW) is None:"),
    ),
    mutant(
        "promise: watchers forgotten on resuming",
        "half of the run was watched, and the statement says none was",
        SEEN,
        ("training/private/hook.py", '*state.get("watched", ())', "*()"),
    ),
    mutant(
        "promise: samples of one person not bounded",
        "how much someone said is in their epsilon",
        "tests/filters/test_apply.py",
        (APPLY, "        left[samples.private[index]] -= kept[index]\n", ""),
        (APPLY, "        if most is not None and max(counts.values()) > most:", "        if most == 0:"),
    ),
    # Budgets.
    mutant(
        "promise: a budget that does not stop",
        "more is released than was promised",
        "tests/privacy/test_budget.py",
        (BUDGET, "        if not after <= self._most * (1 + ROUNDING):", "        if not after <= math.inf:"),
    ),
    mutant(
        "promise: a budget that looks first",
        "what is refused was released already",
        "tests/privacy/test_budget.py",
        (
            BUDGET,
            "        self.spend(mechanism.event)\n        return mechanism.release(*value)",
            "        found = mechanism.release(*value)\n        self.spend(mechanism.event)\n        return found",
        ),
    ),
    mutant(
        "promise: a histogram under replace",
        "one who moves from bin to bin changes two counts, and noise is for one",
        "tests/privacy/test_histogram.py",
        ("privacy/mechanisms/histogram.py", "(2.0, math.sqrt(2.0)) if", "(1.0, math.sqrt(2.0)) if"),
    ),
    # Bundles.
    mutant(
        "promise: any card",
        "the card says what it likes",
        FORGERIES,
        (READER, ".encode() != contents[CARD]:", '.encode() == b"":'),
    ),
    mutant(
        "promise: any claim about bits",
        "noise in floats is said to be exact",
        FORGERIES,
        (STATEMENT, "        if stated.float_safe != account.float_safe:", "        if account is None:"),
    ),
    mutant(
        "promise: any method",
        "an epsilon is said to be by a method that does not give it",
        FORGERIES,
        (STATEMENT, "self.method, math.inf)\n", "self.method, stated.epsilon) * 0 + stated.epsilon\n"),
    ),
    mutant(
        "promise: charges that nothing pays for",
        "tuning and thresholds are said to be covered",
        FORGERIES,
        (STATEMENT, "                if touch.charge not in free or len(free) == 1:", "                if not free:"),
        (STATEMENT, "                free.remove(touch.charge)", "                free.discard(touch.charge)"),
    ),
    mutant(
        "promise: any delta",
        "half of all people may be published",
        FORGERIES,
        (STATEMENT, "        if self.guarantee.delta > MOST_DELTA:", "        if self.guarantee.delta > 1:"),
    ),
    mutant(
        "promise: caveats left out",
        "an utterance's guarantee reads like a person's",
        FORGERIES,
        (STATEMENT, "if caveat not in self.caveats]", "if caveat is None]"),
    ),
]
