"""What spark-submit runs for a LoadTest; all of it is in the package."""

import sys

from joinery.spark.load_job import main

sys.exit(main(sys.argv[1:]))
