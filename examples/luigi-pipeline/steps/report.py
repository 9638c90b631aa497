"""report.py SCORES OUTPUT: which model is best."""

import json
import os
import sys

scores, output = sys.argv[1:]
with open(os.path.join(scores, "scores.json")) as file:
    found = json.load(file)
best = max(found, key=found.get)
lines = [f"{name}: {score:.3f}" for name, score in sorted(found.items())]
with open(os.path.join(output, "report.txt"), "w") as file:
    file.write("\n".join([*lines, f"best: {best}", ""]))
print(f"best: {best}")
