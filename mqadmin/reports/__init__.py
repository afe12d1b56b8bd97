"""What happened to groups over days: the history as Parquet, the nightly job on Spark, and what pages read of it."""
