from __future__ import annotations

import pytest

from remoting.wire.versions import version_name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (493, "5.4.0"),
        (479, "5.3.3"),
        (473, "5.3.0"),
        (453, "5.2.0"),
        (433, "5.1.0"),
        (413, "5.0.0"),
        (412, "5.0.0-SNAPSHOT"),
        (401, "4.9.4"),
        (232, "4.1.0-SNAPSHOT"),
        (121, "before 4.1"),
    ],
)
def test_number_on_the_wire_has_the_name_that_people_know(number: int, name: str) -> None:
    assert version_name(number) == name
