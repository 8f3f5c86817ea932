"""Mutants of releases about tables, of the median mechanism and of a kept budget: kind 13 of the privacy layer."""

from tests.mutants.mutant import mutant

WHOLE, COUNT = "privacy/mechanisms/whole_numbers.py", "privacy/mechanisms/count.py"
SUM, QUANTILE = "privacy/mechanisms/bounded_sum.py", "privacy/mechanisms/quantile.py"
NOISY_MAX, MEDIAN = "privacy/mechanisms/noisy_max.py", "privacy/mechanisms/median.py"
KEPT, ASK = "privacy/accounting/kept.py", "cli/ask.py"

TABULAR_TESTS, MEDIAN_TESTS = "tests/privacy/test_tabular.py", "tests/privacy/test_median.py"
KEPT_TESTS, ASK_TESTS = "tests/privacy/test_kept_budget.py", "tests/cli/test_ask.py"

COUNTED = "int(made.release(whole_tensor(len(found))).value)"
ANSWERED = "float(self._answers.release(torch.tensor([truth], dtype=torch.float64)).value) / rows"

TABLES = [
    mutant(
        "privacy 13a half the noise of counts",
        "a count tells twice as much",
        TABULAR_TESTS,
        (COUNT, COUNTED, f"({COUNTED} + len(found)) // 2"),
    ),
    mutant(
        "privacy 13b sums that move further than their noise is for",
        "who is replaced moves a sum from one bound to the other",
        TABULAR_TESTS,
        (SUM, 'if self.relation.adjacency == "replace":', 'if self.relation.unit == "frame":'),
    ),
    mutant(
        "privacy 13c means of people who are replaced",
        "one person moves sum and number, each by as much",
        TABULAR_TESTS,
        (SUM, "(2 * reach, math.sqrt(2) * reach) if both", "(reach, reach) if both"),
    ),
    mutant(
        "privacy 13d a quantile whose utility moves further",
        "a value from below to above counts twice",
        TABULAR_TESTS,
        (QUANTILE, 'q if self.relation.adjacency == "replace" else max(p, q - p)', "max(p, q - p)"),
    ),
    mutant(
        "privacy 13e the most frequent of people with many rows",
        "one person moves a count by all of them",
        TABULAR_TESTS,
        (NOISY_MAX, "sensitivity=float(self.most)", "sensitivity=1.0"),
    ),
    mutant(
        "privacy 13f all rows of a person",
        "who has many is seen",
        TABULAR_TESTS,
        (WHOLE, "rows if unit_ids is None else rows[limit_contributions(unit_ids, most)]", "rows"),
    ),
    mutant(
        "privacy 13g values beyond the bounds",
        "one row moves a sum as far as it likes",
        TABULAR_TESTS,
        (WHOLE, "inside.clamp(self.lower, self.upper) / self.step", "inside / self.step"),
    ),
    mutant(
        "privacy 13h noise of hard answers for one of them",
        "hard answers together tell far more",
        MEDIAN_TESTS,
        (MEDIAN, "epsilon=self.epsilon / 2 / self.hard", "epsilon=self.epsilon / 2"),
    ),
    mutant(
        "privacy 13i hard answers without noise",
        "a count as it is",
        MEDIAN_TESTS,
        (MEDIAN, ANSWERED, "truth / rows"),
    ),
    mutant(
        "privacy 13j comparisons for half a row",
        "which questions are hard tells twice as much",
        MEDIAN_TESTS,
        (MEDIAN, "positives=self.hard, sensitivity=1.0", "positives=self.hard, sensitivity=0.5"),
    ),
    mutant(
        "privacy 13k comparisons for one hard question",
        "which questions are hard tells c times as much",
        MEDIAN_TESTS,
        (MEDIAN, "positives=self.hard, sensitivity=1.0", "positives=1, sensitivity=1.0"),
    ),
    mutant(
        "privacy 13l a session that looks after its end",
        "the table is asked when nothing is left to pay with",
        MEDIAN_TESTS,
        (MEDIAN, "return self._run.over or self._guesses.contradicted", "return self._guesses.contradicted"),
    ),
    mutant(
        "privacy 13m costs that are not written",
        "the next process has a whole budget",
        KEPT_TESTS,
        (KEPT, "            self._write(database, event, count)\n", ""),
    ),
    mutant(
        "privacy 13n costs of others that are not read",
        "two processes spend the budget twice",
        KEPT_TESTS,
        (KEPT, "            self._read(database.execute(_OF, (self.data, self._seen)).fetchall())\n", ""),
    ),
    mutant(
        "privacy 13o a budget that the next one raises",
        "nothing is ever refused",
        KEPT_TESTS,
        (KEPT, "if value is not None and value != kept[name]:", "if value is None and value != kept[name]:"),
    ),
    mutant(
        "privacy 13p questions that are not paid for",
        "asked often enough, a count has no noise",
        ASK_TESTS,
        (ASK, "kept.release(mechanism, are_so, columns.who)", "mechanism.release(are_so, columns.who)"),
    ),
    mutant(
        "privacy 13q a session that is not paid for",
        "one after the other, for nothing",
        ASK_TESTS,
        (ASK, "    kept.spend(mechanism.event)\n", ""),
    ),
    mutant(
        "privacy 13s a budget for every link",
        "another name of the same file, another budget",
        ASK_TESTS,
        ("data/tables/columns.py", "path.resolve().with_suffix(ASKED)", "path.absolute().with_suffix(ASKED)"),
    ),
    mutant(
        "privacy 13r an error that quotes a row",
        "what is in a row is told without noise",
        "tests/data/tables/test_predicate.py",
        ("data/tables/predicate.py", "        return math.nan\n", "        raise PpspeechError(text) from None\n"),
    ),
]
