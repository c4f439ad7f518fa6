"""The oracle and the ways to call `mha` lie beside the tests: make them importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
