"""Measure, and write docs/measured.json, from which the page `bench` is made: python bench/run.py.

Named parts or groups, as in `bench/run.py tiny site`, are measured alone; the rest stays as it was.
"""

import argparse
from itertools import chain

import package
import visit
import website
from timing import record

GROUPS = {"package": package.PARTS, "site": website.PARTS, "visit": visit.PARTS}


def main() -> None:
    """Measure what was asked for, or all."""
    parts = {part.__name__: [part] for part in chain(*GROUPS.values())}
    named = GROUPS | parts
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("what", nargs="*", choices=[*named, []], help="of " + ", ".join(named))
    for what in parser.parse_args().what or GROUPS:
        for part in named[what]:
            record(part)


if __name__ == "__main__":
    main()
