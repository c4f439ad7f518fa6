"""The oracle and the ways to call `mha` lie beside the tests: make them importable."""

import sys
from pathlib import Path

from hypothesis import Phase, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("mha", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("mha")
# For `nox -s mutants`: no time is spent on making a failing example smaller.
settings.register_profile("mutants", settings.get_profile("mha"), phases=[Phase.generate])
