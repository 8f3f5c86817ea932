"""Mutants of tables without a guarantee, and of the attacks that show so."""

from tests.mutants.mutant import mutant

ROOM = "privacy/anonymity"
TESTS = "tests/privacy/test_anonymity.py"
LINK = "evidence/attacks/tables/linkage.py"
LINK_TESTS = "tests/evidence/attacks/test_tables.py"

NOTHING = '        return NonPrivateEvent(f"{self.k}-anonymous rows", self.relation)'

ANONYMITY = [
    mutant(
        "anonymity: classes of k - 1",
        "a row is like fewer others than is said",
        TESTS,
        (f"{ROOM}/lattice.py", "np.bincount(member)[member] >= k)", "np.bincount(member)[member] >= k - 1)"),
    ),
    mutant(
        "anonymity: boxes cut too small",
        "a row is like fewer others than is said",
        TESTS,
        (f"{ROOM}/mondrian.py", "if k <= int(lower.sum()) <= len(own) - k:", "if 1 <= int(lower.sum()) < len(own):"),
    ),
    mutant(
        "anonymity: more rows left out than allowed",
        "rows are missing that were promised to be there",
        TESTS,
        (f"{ROOM}/lattice.py", "- len(tried.kept) > most_left_out:", "- len(tried.kept) > 2 * most_left_out + 9:"),
    ),
    mutant(
        "anonymity: what has no guarantee costs nothing",
        "an account takes k-anonymity for privacy",
        TESTS,
        (
            f"{ROOM}/k_anonymity.py",
            NOTHING,
            "        from ppspeech.privacy.accounting.events import PureEvent\n\n"
            "        return PureEvent(0.0, self.relation)  # type: ignore[return-value]",
        ),
    ),
    mutant(
        "anonymity: values drawn, not swapped",
        "counts that are said to be kept are not",
        TESTS,
        (f"{ROOM}/swapping.py", "source[np.sort(chosen)] = chosen ", "source[np.sort(chosen)] = chosen[:1] "),
    ),
    mutant(
        "anonymity: swapped among all",
        "counts with the key are not kept",
        TESTS,
        (f"{ROOM}/swapping.py", "member = records.classes(self.key)", "member = records.classes(())"),
    ),
    mutant(
        "anonymity: each rule hidden once",
        "hiding one rule brings another back",
        TESTS,
        (
            f"{ROOM}/rules.py",
            "        while found := [rule for rule in self.sensitive if self.is_found(left, rule)]:\n"
            "            self._hide(left, found[0])\n",
            "        for rule in self.sensitive:\n            self._hide(left, rule)\n",
        ),
    ),
    mutant(
        "anonymity: ghosts are not listed",
        "a rule that nobody had is taken for found",
        TESTS,
        (f"{ROOM}/rules.py", "after - before)\n", "after & frozenset())\n"),
    ),
    mutant(
        "anonymity: one matrix for all tables",
        "two tables mixed alike, one of them known, give the other",
        TESTS,
        (
            "privacy/mechanisms/projection.py",
            "drawn = standard_normal((self.inputs, self.outputs))",
            "drawn = torch.randn(self.inputs, self.outputs, generator=torch.Generator().manual_seed(0)).double()",
        ),
    ),
    mutant(
        "anonymity: rows in the order they came in",
        "who knows the order of the people knows their rows",
        "tests/cli/test_anonymize.py",
        ("cli/anonymize.py", "written = shuffled(left.records)", "written = left.records"),
    ),
    mutant(
        "anonymity: an attacker who reads the names",
        "an audit says that everybody is named, whatever protects them",
        LINK_TESTS,
        (LINK, "if name in released.columns and name != person)", "if name in released.columns)"),
    ),
    mutant(
        "anonymity: an attacker who is told which of equals",
        "an audit says that k-anonymity protects nobody",
        LINK_TESTS,
        (
            LINK,
            "found: Reals = best[np.arange(len(truth)), truth] / best.sum(axis=1)",
            "found: Reals = best.max(axis=1)",
        ),
    ),
    mutant(
        "anonymity: an attacker who matches in the order of the rows",
        "an audit finds people among equals because both files are sorted alike",
        LINK_TESTS,
        (LINK, "    order = random_order(len(low))\n", "    order = np.arange(len(low))\n"),
    ),
]
