"""CIEDE2000 against the pairs that its authors published for checking implementations."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.color import difference, lab

PUBLISHED = [  # Sharma, Wu and Dalal 2005, table 1
    ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
    ((50.0, 3.1571, -77.2803), (50.0, 0.0, -82.7485), 2.8615),
    ((50.0, 2.8361, -74.0200), (50.0, 0.0, -82.7485), 3.4412),
    ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
    ((50.0, 2.4900, -0.0010), (50.0, -2.4900, 0.0009), 7.1792),
    ((50.0, 2.4900, -0.0010), (50.0, -2.4900, 0.0011), 7.2195),
    ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
    ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ((50.0, 2.5, 0.0), (61.0, -5.0, 29.0), 22.8977),
    ((50.0, 2.5, 0.0), (56.0, -27.0, -3.0), 31.9030),
    ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
]


@pytest.mark.parametrize(("first", "second", "expected"), PUBLISHED)
def test_published_pairs_come_out_in_both_orders(
    first: tuple[float, ...], second: tuple[float, ...], expected: float
) -> None:
    one, other = np.array([first]), np.array([second])
    assert difference(one, other)[0] == pytest.approx(expected, abs=1e-4)
    assert difference(other, one)[0] == pytest.approx(expected, abs=1e-4)


def test_black_and_white_differ_by_a_hundred_and_a_color_not_from_itself() -> None:
    black, white = lab(["#000000"]), lab(["#ffffff"])
    assert difference(black, white)[0] == pytest.approx(100, abs=0.01)
    colors = lab(["#10b981", "#f3f4f6", "#7f1d1d"])
    assert difference(colors, colors) == pytest.approx([0, 0, 0])


def test_known_colors_have_their_known_lab_values() -> None:
    assert lab(["#ff0000"])[0] == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    with pytest.raises(ValueError):
        lab(["white!"])
