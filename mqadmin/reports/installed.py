"""Whether what reports need is installed: a slimmer install leaves it out."""

from __future__ import annotations

import importlib.util

PACKAGES = ("pyspark", "pyarrow")


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]
