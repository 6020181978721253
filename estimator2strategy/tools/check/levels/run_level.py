"""The process of one level; see `process.main`."""

import sys

from estimator2strategy.tools.check.levels import process

process.main(sys.argv[1])
