"""Joinery for Spark: the data source `joinery`.

    from joinery.spark import JoineryDataSource

    spark.dataSource.register(JoineryDataSource)
    frame.write.format("joinery").option("gateway", "127.0.0.1:7400").option("stream", "orders").mode("append").save()
    results = spark.readStream.format("joinery").option("gateway", "127.0.0.1:7400").load()

What it promises: docs/spark.md.
"""

from joinery.spark.source import JoineryDataSource
from joinery.spark.writing import end_stream

__all__ = ["JoineryDataSource", "end_stream"]
