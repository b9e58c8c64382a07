import random

import pytest

from evaluators.preference import (
    Met,
    agreement,
    bradley_terry,
    matrix,
    side_bias,
    win_rates,
)

TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WINS = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)
PUBLISHED = {  # log-strength against Baltimore, and its standard error
    "Milwaukee": (1.5814, 0.3433),
    "Detroit": (1.4364, 0.3396),
    "Toronto": (1.2945, 0.3367),
    "New York": (1.2476, 0.3359),
    "Boston": (1.1077, 0.3339),
    "Cleveland": (0.6839, 0.3319),
}


def season() -> dict[tuple[str, str], Met]:
    return {
        (one, other): Met(wins=WINS[i][j], losses=WINS[j][i])
        for i, one in enumerate(TEAMS)
        for j, other in enumerate(TEAMS)
        if i != j
    }


def test_strengths_are_those_published_for_the_american_league_of_1987() -> None:
    """Agresti, Categorical Data Analysis (2nd ed. 2002), section 10.6.

    The wins are those of the data set `baseball` of R's BradleyTerry2, home and away together; the
    strengths and errors those that the package's own test output gives for it, which table 10.11 of
    the book has with two decimals.
    """
    found = bradley_terry(season(), reference="Baltimore")
    assert found["Baltimore"].value == found["Baltimore"].low == 0
    for team, (strength, error) in PUBLISHED.items():
        figure = found[team]
        assert figure.value == pytest.approx(strength, abs=5e-5)
        assert figure.high is not None and figure.low is not None
        assert (figure.high - figure.low) / 2 / 1.959964 == pytest.approx(error, abs=5e-5)
        assert figure.n == 78


def test_without_a_reference_strengths_are_relative_to_the_mean() -> None:
    found = bradley_terry(season())
    assert sum(figure.value or 0 for figure in found.values()) == pytest.approx(0, abs=1e-9)
    assert (found["Milwaukee"].value or 0) - (found["Baltimore"].value or 0) == pytest.approx(
        1.5814, abs=1e-4
    )
    widths = [f.high - f.low for f in found.values() if f.high is not None and f.low is not None]
    assert len(widths) == 7
    assert min(widths) > 0.5


def test_two_that_met_have_the_log_odds_of_their_points() -> None:
    found = bradley_terry(matrix([("a", "b", 1.0)] * 3 + [("a", "b", 0.0)]), reference="b")
    assert found["a"].value == pytest.approx(1.0986, abs=1e-4)  # log(3 / 1)
    assert found["a"].n == 4


@pytest.mark.parametrize(
    "outcomes",
    [
        [("a", "b", 1.0)] * 20,  # b never got a point
        [("a", "b", 1.0), ("b", "c", 1.0)],  # a never lost one, c never got one
    ],
)
def test_a_strength_that_is_at_infinity_is_unknown(outcomes) -> None:
    found = bradley_terry(matrix(outcomes))
    assert {(f.value, f.low, f.high) for f in found.values()} == {(None, None, None)}
    assert all(f.n for f in found.values())


def test_one_that_never_got_a_point_leaves_the_others_theirs() -> None:
    found = bradley_terry(matrix([("a", "b", 1.0), ("b", "a", 1.0), ("b", "c", 1.0)]))
    assert found["a"].value == found["b"].value == pytest.approx(0)
    assert (found["c"].value, found["c"].n) == (None, 1)
    against_c = bradley_terry(matrix([("a", "b", 0.5), ("b", "c", 1.0)]), reference="c")
    assert {figure.value for figure in against_c.values()} == {None}


def test_nothing_in_gives_nothing_and_a_stranger_is_no_reference() -> None:
    assert bradley_terry({}) == {}
    with pytest.raises(ValueError, match="'z'"):
        bradley_terry(matrix([("a", "b", 0.5)]), reference="z")


def test_a_lopsided_table_still_converges() -> None:
    outcomes = [("a", "b", 1.0)] * 5000 + [("b", "a", 1.0), ("b", "c", 1.0)] + [("c", "b", 1.0)] * 9
    found = bradley_terry(matrix(outcomes), reference="b")
    assert found["a"].value == pytest.approx(8.517, abs=1e-3)  # log 5000
    assert found["c"].value == pytest.approx(2.197, abs=1e-3)  # log 9


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng, held = random.Random(1), 0
    for _ in range(200):
        outcomes = [("a", "b", float(rng.random() < 0.6)) for _ in range(100)]
        figure = bradley_terry(matrix(outcomes), reference="b")["a"]
        assert figure.low is not None and figure.high is not None
        held += figure.low <= 0.405465 <= figure.high  # log(0.6 / 0.4)
    assert 180 <= held <= 199


def test_the_matrix_counts_both_ways_and_nobody_against_themselves() -> None:
    met = matrix([("a", "b", 1.0), ("b", "a", 0.5), ("b", "a", 1.0), ("a", "a", 1.0)])
    assert met == {("a", "b"): Met(1, 1, 1), ("b", "a"): Met(1, 1, 1)}


def test_win_rates_are_over_all_opponents_with_ties_as_halves() -> None:
    met = matrix([("a", "b", 1.0), ("a", "b", 0.5), ("c", "a", 1.0), ("c", "a", 0.0)])
    found = win_rates(met)
    assert (found["a"].value, found["a"].n) == (2.5 / 4, 4)
    assert (found["b"].value, found["b"].n) == (0.25, 2)
    assert found["a"].low is not None and found["a"].low < 0.625
    assert Met().win_rate.value is None


def test_side_bias_is_seen_only_with_enough_votes() -> None:
    few, many = side_bias(3, 1), side_bias(75, 25)
    assert few.low is not None and few.low < 0.5
    assert many.low is not None and many.low > 0.5
    assert (side_bias(0, 0).value, side_bias(0, 0).n) == (None, 0)


def test_agreement_counts_equal_points() -> None:
    figure = agreement([(1.0, 1.0), (0.5, 1.0), (0.0, 0.0), (1.0, 0.0)])
    assert (figure.value, figure.n) == (0.5, 4)
    assert agreement([]).value is None
