"""A Spark for one command: the one that is configured (spark-submit, SPARK_MASTER), else this machine's cores."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from joinery.model.errors import UserMustAct


@contextmanager
def local(name: str, slots: int | None = None) -> Iterator[SparkSession]:
    """Stopped at the end; `slots`: tasks that must run at the same time."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise UserMustAct("found no Java, wanted 17 or newer for Spark; install a JRE, or set JAVA_HOME")
    cores = slots or os.cpu_count() or 1
    building = SparkSession.builder.appName(name).master(os.environ.get("SPARK_MASTER", f"local[{cores}]"))
    building = building.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    building = building.config("spark.log.level", "ERROR").config("spark.sql.session.timeZone", "UTC")
    building = building.config("spark.python.daemon.module", "joinery.spark.daemon")
    session = building.config("spark.sql.shuffle.partitions", str(cores)).getOrCreate()
    try:
        yield session
    finally:
        session.stop()
