"""How different two colours look: CIEDE2000. Pure: numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)  # sRGB, IEC 61966-2-1
_WHITE = _TO_XYZ.sum(1)  # D65
_DELTA = 6 / 29


def lab(colors: Sequence[str]) -> np.ndarray:
    """The CIELAB values of "#rrggbb" colours, a row each. Raises: ValueError for another text."""
    rgb = [[int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in colors]
    return rgb_to_lab(np.array(rgb, dtype=float).reshape(-1, 3))


def rgb_to_lab(rgb: np.ndarray) -> np.ndarray:
    """The CIELAB values of sRGB values from 0 to 255, a row each."""
    share = rgb / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    ratio = linear @ _TO_XYZ.T / _WHITE
    f = np.where(ratio > _DELTA**3, np.cbrt(ratio), ratio / (3 * _DELTA**2) + 4 / 29)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """CIEDE2000 between CIELAB values, row by row; black and white differ by 100.

    Source: Sharma, Wu and Dalal 2005.
    """
    (l1, a1, b1), (l2, a2, b2) = first.T, second.T
    mean_chroma7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * np.sqrt(mean_chroma7 / (mean_chroma7 + 25.0**7))
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1, h2 = np.arctan2(b1, a1 * stretch), np.arctan2(b2, a2 * stretch)
    turn = (h2 - h1 + np.pi) % (2 * np.pi) - np.pi
    hue = np.where(c1 * c2 == 0, h1 + h2, h1 + turn / 2)
    lightness, chroma = (l1 + l2) / 2 - 50, (c1 + c2) / 2
    t = (
        1
        - 0.17 * np.cos(hue - np.pi / 6)
        + 0.24 * np.cos(2 * hue)
        + 0.32 * np.cos(3 * hue + np.pi / 30)
        - 0.20 * np.cos(4 * hue - 7 * np.pi / 20)
    )
    by_l = (l2 - l1) / (1 + 0.015 * lightness**2 / np.sqrt(20 + lightness**2))
    by_c = (c2 - c1) / (1 + 0.045 * chroma)
    by_h = 2 * np.sqrt(c1 * c2) * np.sin(turn / 2) / (1 + 0.015 * chroma * t)
    degrees = np.degrees(hue) % 360
    angle = np.radians(60 * np.exp(-(((degrees - 275) / 25) ** 2)))
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(angle)
    return np.sqrt(np.maximum(0, by_l**2 + by_c**2 + by_h**2 + rotation * by_c * by_h))
