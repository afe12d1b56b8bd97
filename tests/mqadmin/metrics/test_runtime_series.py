"""Runtime info of a broker as the exporter's series: every text that Apache writes, and none that says nothing."""

from __future__ import annotations

import pytest

from mqadmin.metrics.runtime_series import NUMBERS, RATES, series_of


def test_numbers_rates_sizes_and_counts_by_time() -> None:
    figures = {
        "putMessageTimesTotal": "17",
        "commitLogDiskRatio": "0.43",
        "putTps": "1.5 2.5 3.5",
        "getTransferredTps": "4.0 5.0 6.0",
        "commitLogDirCapacity": "Total : 1.5 GiB, Free : 512.0 MiB.",
        "remainHowManyDataToFlush": "2.0 KiB",
        "putMessageDistributeTime": "[<=0ms]:3 [0~10ms]:4 [500ms~1s]:5 [10s~]:6 ",
    }
    assert dict(series_of(figures)) == {
        "putmessage_times_total": 17,
        "commitlog_disk_ratio": 0.43,
        "put_tps10": 1.5,
        "put_tps60": 2.5,
        "put_tps600": 3.5,
        "gettransfered_tps10": 4,
        "gettransfered_tps60": 5,
        "gettransfered_tps600": 6,
        "commitlogdir_capacity_total": 1.5 * 1024**3,
        "commitlogdir_capacity_free": 512 * 1024**2,
        "remain_howmanydata_toflush": 2048,
        "pmdt_0ms": 3,
        "pmdt_0to10ms": 4,
        "pmdt_500to1s": 5,
        "pmdt_10stomore": 6,
    }


@pytest.mark.parametrize("text", ["", "unknown", "1,5", "NaN years", "9" * 400 + " QiB", "[x]:y"])
def test_a_text_that_is_no_number_makes_no_series(text: str) -> None:
    keys = [*NUMBERS.values(), *RATES.values(), "commitLogDirCapacity", "remainHowManyDataToFlush"]
    series = dict(series_of(dict.fromkeys([*keys, "putMessageDistributeTime"], text)))
    assert all(name.endswith("tps10") for name in series), series
