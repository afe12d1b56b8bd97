"""The PySpark data source `rocketmq`: messages of a topic as rows, in batches and streams (docs/SPARK.md).

    from remoting.spark import RocketmqDataSource

    spark.dataSource.register(RocketmqDataSource)
    orders = spark.read.format("rocketmq").option("namesrv", "127.0.0.1:9876").option("topic", "orders").load()

Needs pyspark and pyarrow, here and on the executors; no Django, no consumer group. What is read is planned by pure
functions (`positions.py`, `spans.py`); `topic_client.py` asks the brokers, `source.py` is what Spark sees.
"""

from remoting.spark.source import RocketmqDataSource

__all__ = ["RocketmqDataSource"]
