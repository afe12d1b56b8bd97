"""A list's address: read with bounds, written for its neighbours."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from mqadmin.console.listing import FILTER_CHARS_MAX, Listing, read_listing


def listing(query: str) -> Listing:
    return read_listing(
        QueryDict(query),
        sorts=("verdict", "name", "lag"),
        default_sort="verdict",
        choice_name="status",
        choices=("ok", "stalled"),
    )


def test_an_empty_query_is_the_first_page_in_the_default_order():
    read = listing("")
    assert (read.sort, read.is_descending, read.page, read.text, read.choice) == ("verdict", False, 1, "", "")


@pytest.mark.parametrize("page", ["0", "-3", "x", "", "9" * 40, "٣"])
def test_a_page_that_is_none_is_the_first(page):
    assert listing(f"page={page}").page == 1


@pytest.mark.parametrize("sort", ["password", "--lag", "-", "name;drop"])
def test_a_sort_that_is_not_offered_is_ignored(sort):
    assert listing(f"sort={sort}").sort == "verdict"


def test_a_status_that_does_not_exist_is_ignored():
    assert listing("status=gorgeous").choice == ""


def test_a_filter_is_cut_to_what_a_person_types():
    assert len(listing("q=" + "x" * 5000).text) == FILTER_CHARS_MAX


def test_figures_sort_largest_first_and_turn_round_at_the_second_click():
    assert listing("q=bill").sorted_by("lag") == "?q=bill&sort=-lag"
    assert listing("q=bill&sort=-lag").sorted_by("lag") == "?q=bill&sort=lag"


def test_names_sort_from_a_to_z_first():
    assert listing("").sorted_by("name") == "?sort=name"


def test_another_order_begins_at_the_first_page():
    assert "page" not in listing("page=7").sorted_by("lag")


def test_a_neighbouring_page_keeps_filter_and_order():
    assert listing("q=a%26b&sort=-lag").at_page(2) == "?q=a%26b&sort=-lag&page=2"


def test_the_head_of_the_sorted_column_says_its_direction():
    assert listing("sort=-lag").direction_of("lag") == "descending"
    assert listing("sort=-lag").direction_of("name") == ""
