"""Mutation testing of mha: run the tool, print the score, and list what no test notices.

equivalent_mutants.toml lists the mutants that no test can notice, with the reason. Any other
survivor, and an entry there that is not needed, ends this with exit code 1.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path


def mutants():
    """Its function, how it ended, and what it changes, for every mutant."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    for path in sorted(Path("mutants/mha").glob("*.py.meta")):
        ends = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        for name, code in ends.items():
            function = re.sub(r"\.x_|\.xǁ|ǁ", ".", name).rpartition("__mutmut_")[0]
            ended = status_by_exit_code[code]
            dead = ended in ("killed", "timeout")
            diff = "" if dead else get_diff_for_mutant(name, path=Path("mha", path.stem))
            yield function, ended, re.sub(r"^(---|\+\+\+|@@| ).*\n?", "", diff, flags=re.MULTILINE)


def accepted():
    """The function, and the lines that such a mutant puts in."""
    text = Path(__file__).with_name("equivalent_mutants.toml").read_text(encoding="utf-8")
    for group in tomllib.loads(text)["equivalent"]:
        for function, changes in group["mutants"].items():
            yield from ((function, lines) for lines in changes)


def judge():
    """Print the score and what is wrong with it."""
    ends, wrong, unused = Counter(), [], set(accepted())
    for function, ended, diff in mutants():
        lines = " ".join(line[1:].strip() for line in diff.splitlines() if line.startswith("+"))
        if diff and (function, lines) in set(accepted()):
            ended = "equivalent"
            unused.discard((function, lines))
        elif diff:
            wrong.append(f"{ended}: {function}\n{diff}")
        ends[ended] += 1
    wrong += [f"listed, but killed or gone: {function}: {lines}" for function, lines in unused]
    dead, rest = ends["killed"] + ends["timeout"], ends.total() - ends["equivalent"]
    print("\n".join(wrong))
    print(f"{ends.total()} mutants:", ", ".join(f"{n} {ended}" for ended, n in ends.items()))
    print(f"score: {dead} of {rest} that change anything, {dead / rest:.1%}")
    return bool(wrong)


if __name__ == "__main__":
    shutil.rmtree("mutants", ignore_errors=True)  # or the tool keeps what it found last time
    subprocess.run([Path(sys.executable).with_name("mutmut"), "run"], check=True)
    sys.exit(judge())
