"""Whether what reports need is installed: a slimmer install leaves it out."""

from __future__ import annotations

import importlib.util

PACKAGES = ("pyspark", "pyarrow")


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def can_draw() -> bool:
    """Tells whether the script that draws figures is there: reports may have been made before it was left out."""
    return importlib.util.find_spec("plotly") is not None
