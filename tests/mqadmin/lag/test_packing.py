from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.lag import packing, written
from mqadmin.lag.packing import QueueSample, Sampled, pack, unpack
from mqadmin.lag.written import WrittenGroup

OFFSETS = st.none() | st.integers(0, 2**62)
QUEUES = st.builds(
    QueueSample,
    st.text(min_size=1, max_size=40),
    st.integers(0, 2**31 - 1),
    OFFSETS,
    OFFSETS,
    st.none() | st.integers(0, 2**50),
    st.none() | st.integers(0, 2**31 - 1),
)
SAMPLES = st.builds(
    Sampled,
    st.integers(0, 255),
    st.none() | st.integers(0, 10_000),
    st.none() | st.integers(0, packing.AGE_S_MAX),
    st.lists(QUEUES, max_size=20).map(tuple),
)


@given(SAMPLES)
def test_what_was_packed_comes_back(sampled: Sampled) -> None:
    assert unpack(pack(sampled)) == sampled


def test_bytes_of_another_format_are_refused() -> None:
    with pytest.raises(ValueError, match="this version reads 1"):
        unpack(b"\x02" + pack(Sampled(0, None, None, ()))[1:])


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_damaged_bytes_are_refused(cut: int) -> None:
    packed = pack(Sampled(0, 2, 1, (QueueSample("broker-a", 0, 5, 9),)))
    with pytest.raises(ValueError, match="damaged"):
        unpack(packed[:cut])


def test_more_brokers_than_fit_are_refused() -> None:
    queues = tuple(QueueSample(f"broker-{number}", 0, 0, 0) for number in range(packing.BROKERS_MAX + 1))
    with pytest.raises(ValueError, match="256 brokers"):
        pack(Sampled(0, None, None, queues))


def test_lag_of_a_queue_is_not_known_without_an_offset_and_nothing_where_no_message_ever_was() -> None:
    assert QueueSample("a", 0, None, 5).lag is None
    assert QueueSample("a", 0, None, 0).lag == 0
    assert QueueSample("a", 0, 7, 5).lag == 0


def test_waiting_is_counted_from_its_moment() -> None:
    assert QueueSample("a", 0, 1, 2, 90_000).waiting_s(100) == 10
    assert QueueSample("a", 0, 2, 2, 0).waiting_s(100) == 0
    assert QueueSample("a", 0, 1, 2, None).waiting_s(100) is None


@given(
    st.dictionaries(
        st.integers(1, 2**60),
        st.builds(
            WrittenGroup,
            st.integers(0, 2**32 - 1),
            st.dictionaries(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), max_size=4),
        ),
        max_size=20,
    )
)
def test_what_was_written_last_comes_back(groups: dict[int, WrittenGroup]) -> None:
    assert written.unpack(written.pack(groups)) == groups
    assert written.unpack(b"") == {}
