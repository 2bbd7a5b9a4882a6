"""`python -m bench`; one thread for every library, which they learn from the environment when they are loaded."""

import os
import sys

os.environ.update(dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

from bench.cli import main

sys.exit(main(sys.argv[1:]))
