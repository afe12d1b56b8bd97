"""Every pair of colours that meets on a page holds WCAG's contrast, in both themes; read from the tokens themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = Path(__file__).parents[3] / "static" / "console.css"
THEMES = ("light", "dark")
TEXT = 4.5
SHAPE = 3.0
STATUS = ("ok", "slow", "stalled", "stopped", "rewound", "busy", "quiet")
SURFACES = ("background", "background-side", "background-hover", "background-raised")

PAIRS = [
    *((word, surface, TEXT) for word in ("foreground", "muted", "accent") for surface in SURFACES),
    *((word, surface, TEXT) for word in STATUS for surface in ("background", "background-side", "background-hover")),
    ("accent", "accent-background", TEXT),
    ("foreground", "accent-background", TEXT),
    ("muted", "accent-background", TEXT),
    ("on-accent", "accent", TEXT),
    *((word, "stalled-background", TEXT) for word in ("foreground", "accent", "stalled")),
    *((word, "slow-background", TEXT) for word in ("foreground", "accent", "slow")),
    ("foreground", "flash", TEXT),
    ("foreground", "line", TEXT),
    ("border", "background", SHAPE),
    ("border", "background-side", SHAPE),
]


def tokens() -> dict[str, tuple[str, str]]:
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS.read_text())
    return {name: (light, dark) for name, light, dark in found}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_on_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("front", "back", "at_least"), PAIRS, ids=lambda value: str(value))
def test_colours_that_meet_can_be_told_apart(front, back, at_least, theme):
    side = THEMES.index(theme)
    colours = tokens()
    measured = contrast(colours[front][side], colours[back][side])
    assert measured >= at_least, f"{front} on {back} in the {theme} theme: {measured:.2f}"


def test_style_stays_small_and_without_force():
    lines = CSS.read_text().splitlines()
    assert len(lines) < 1000
    assert not any("!important" in line for line in lines)


def test_colours_are_written_in_the_tokens_alone():
    _, _, rest = CSS.read_text().partition("/* ---- ground ---- */")
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsl", rest)


def test_every_class_of_the_style_is_used():
    root = CSS.parents[1]
    sources = [*root.glob("templates/**/*.html"), *root.glob("mqadmin/console/**/*.py"), root / "static" / "live.js"]
    used = set(re.findall(r"[\w-]+", " ".join(source.read_text() for source in sources)))
    made = {f"is-{tone}" for tone in (*STATUS, "unknown")}
    without_comments = re.sub(r"/\*.*?\*/", "", CSS.read_text(), flags=re.DOTALL)
    assert set(re.findall(r"\.([a-z][\w-]*)", without_comments)) - used - made == set()
