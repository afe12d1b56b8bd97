from __future__ import annotations

from mqadmin.clusters.versions import version_name


def test_a_version_that_was_not_heard_yet_has_no_name() -> None:
    assert version_name(None) == ""
    assert version_name(493) == "5.4.0"
