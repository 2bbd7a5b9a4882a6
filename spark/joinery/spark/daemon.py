"""Spark's daemon of Python workers, with what our jobs need loaded once: each worker is a fork of it.

A fresh worker would spend a second of processor time on imports. Set with `spark.python.daemon.module`
(`session.local` does). Nothing here opens a connection or starts a thread: that does not survive a fork.
"""

import pyspark.sql.datasource
import pyspark.sql.pandas.types  # noqa: F401 - loaded for the forks
from pyspark.daemon import manager

import joinery.flow.ingest
import joinery.generate.from_spec
import joinery.join.plan  # noqa: F401 - loaded for the forks

if __name__ == "__main__":
    manager()
