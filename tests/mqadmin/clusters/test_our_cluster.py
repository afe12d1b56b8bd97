"""Following our own broker, the real one, while members come and go."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]
