"""Mutants of filters: of codes, and of the bounds on naming."""

from tests.mutants.mutant import mutant

CERTIFIED, CODES, NOISY = "filters/certified.py", "filters/codes.py", "filters/noisy.py"
BOUNDS, CODE_TESTS = "tests/filters/test_certified.py", "tests/filters/test_codes.py"

FILTERS = [
    mutant(
        "the last bits of a code of what it replaces",
        "the vector before the code, and with it the voice, is handed on in rounding errors",
        CODE_TESTS,
        (
            CODES,
            "return self.codes[nearest(z, self.codes)] + (z - z.detach())",
            "return z + (self.codes[nearest(z, self.codes)] - z).detach()",
        ),
    ),
    mutant(
        "a truth told twice as often",
        "random codes tell more than their epsilon",
        CODE_TESTS,
        (NOISY, "return -math.expm1(-self.epsilon) /", "return -math.expm1(-2 * self.epsilon) /"),
    ),
    mutant(
        "ten clips bounded as one",
        "a person who speaks ten times is named more often than is stated",
        BOUNDS,
        (NOISY, 'event.merged([(event, check_count("clips", clips))])', "event.merged([(event, 1)])"),
    ),
    mutant(
        "the number of clips left out of the ball",
        "a bound that people with many clips exceed",
        BOUNDS,
        (CERTIFIED, 'math.sqrt(check_count("clips", clips)) * bound', 'check_count("clips", clips) ** 0 * bound'),
    ),
    mutant(
        "half the radius",
        "the ball's ends are further from its center than is stated",
        BOUNDS,
        (CERTIFIED, "* bound / sigma", "* bound / (2 * sigma)"),
    ),
    mutant(
        "a level that is left over and not used",
        "the best attacker guesses in the rest as well",
        BOUNDS,
        (CERTIFIED, "return min(1.0, power + found * left / level)", "return min(1.0, power)"),
    ),
    mutant(
        "a quarter of epsilon toward the center",
        "pure noise names people more often than is stated",
        BOUNDS,
        (NOISY, "named_by_pure(self.epsilon / 2, people, clips)", "named_by_pure(self.epsilon / 4, people, clips)"),
    ),
    mutant(
        "a bare filter with a bound",
        "a filter that proves nothing is believed",
        BOUNDS,
        (
            CERTIFIED,
            'return NamingBound(1.0, people, clips, "none")',
            'return NamingBound(1 / people, people, clips, "counted")',
        ),
    ),
]
