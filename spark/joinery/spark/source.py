"""The data source `joinery`: frames into a running query's streams, results out of it as a streaming frame.

Spark makes these objects anew in several processes: what stands here is options and schemas only. The driver checks the
frame against the query before a row moves.
"""

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from joinery.spark.options import Options
from joinery.spark.reading import ResultsReader
from joinery.spark.schemas import results_schema
from joinery.spark.writing import BatchWriter, StreamWriter


class JoineryDataSource(DataSource):
    """Register it with `spark.dataSource.register(JoineryDataSource)`."""

    @classmethod
    def name(cls) -> str:
        return "joinery"

    def schema(self) -> StructType:
        """The columns of the results, as the query's gateway tells them."""
        with Options.read(self.options).connect() as query:
            return results_schema(query.schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BatchWriter(Options.read(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802, ARG002
        return StreamWriter(Options.read(self.options), schema)

    def simpleStreamReader(self, schema: StructType) -> ResultsReader:  # noqa: N802
        return ResultsReader(Options.read(self.options), schema)
