"""Runs the examples of a page: in each fence marked `console`, lines that begin with `$ ` are
commands, and the lines after them their expected output. `…` matches anything within a line. All
commands run in one folder with the caller's environment. examples.py PAGE"""

import re
import subprocess
import sys

page = open(sys.argv[1], encoding="utf-8").read()
count = 0
for fence in re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
    for example in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:]:
        command, _, expected = example.partition("\n")
        ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True)
        printed = ran.stdout.decode().replace("\r\n", "\n")
        # curl ends a body without a line end.
        if not printed.endswith("\n"):
            printed += "\n"
        pattern = "[^\n]*".join(re.escape(part) for part in expected.split("…"))
        if ran.returncode != 0 or not re.fullmatch(pattern, printed):
            sys.exit(f"{sys.argv[1]}: $ {command}\nprints:\n{printed}instead of:\n{expected}"
                     f"exit code {ran.returncode}, {ran.stderr.decode()}")
        count += 1
if count == 0:
    sys.exit(f"{sys.argv[1]} has no examples")
print(f"examples: {count} commands print what {sys.argv[1]} says")
