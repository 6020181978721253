"""`python -m estimator2strategy` is the command `e2s`."""

import sys

from estimator2strategy.cli import main

sys.exit(main())
