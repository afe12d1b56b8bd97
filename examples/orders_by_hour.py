"""A Spark job of one's own: what came into a topic hour by hour, and how far its groups were behind at that time.

    python examples/orders_by_hour.py --namesrv 127.0.0.1:9876 --topic orders --history var/history/v1/lag --out orders

Reads the messages from the brokers by the data source `rocketmq` (docs/SPARK.md) and the lag from the Parquet files
that the console appends every hour (docs/HISTORY.md). Runs as it is with `spark-submit`, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from remoting.spark import RocketmqDataSource


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    spark = SparkSession.builder.appName(f"{given.topic} by hour").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.dataSource.register(RocketmqDataSource)
    messages = (
        spark.read.format("rocketmq")
        .option("namesrv", given.namesrv)
        .option("topic", given.topic)
        .option("startingTimestamp", given.since)
        .load()
    )
    history = spark.read.parquet(given.history)
    by_hour = beside(came(messages), behind(history, given.topic))
    by_hour.write.mode("overwrite").parquet(given.out)
    spark.read.parquet(given.out).orderBy("hour", "tag", "cluster", "consumer_group").show(100, truncate=False)
    spark.stop()


def came(messages: DataFrame) -> DataFrame:
    """Messages and bytes by hour and tag."""
    return (
        messages.groupBy(F.date_trunc("hour", "stored_at").alias("hour"), F.col("tags").alias("tag"))
        .agg(F.count("*").alias("messages"), F.sum(F.octet_length("body")).alias("bytes"))
        .select("hour", "tag", "messages", "bytes")
    )


def behind(history: DataFrame, topic: str) -> DataFrame:
    """The most messages of the topic that waited for each group of each cluster, by hour.

    A sample with an offset that is not known is left out; a queue that never had a message has none, and needs none.
    """

    def waits(end: Column, committed: Column) -> Column:
        # `greatest` would pass over what is null, and make it 0.
        return F.when((end == 0) | (end < committed), F.lit(0)).otherwise(end - committed)

    waiting = F.zip_with("ends", "committed", waits)
    lag = F.aggregate(waiting, F.lit(0).cast("long"), lambda total, one: total + one)
    return (
        history.where(F.col("topic") == topic)
        .groupBy(F.date_trunc("hour", "at").alias("hour"), "cluster", "consumer_group")
        .agg(F.max(lag).alias("lag_max"))
        .select("hour", "cluster", "consumer_group", "lag_max")
    )


def beside(messages: DataFrame, lag: DataFrame) -> DataFrame:
    """Every hour in which messages came, with each group that was sampled then."""
    joined = messages.join(lag, on="hour", how="left")
    return joined.select("hour", "tag", "messages", "bytes", "cluster", "consumer_group", "lag_max")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--namesrv", required=True, help="name servers, host:port;host:port")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--history", required=True, help="the folder v1/lag of the history")
    parser.add_argument("--out", required=True, help="the folder of the result; what was there is replaced")
    parser.add_argument("--since", default="1970-01-01", help="messages stored before are left out (ISO time)")
    return parser


if __name__ == "__main__":
    main()
