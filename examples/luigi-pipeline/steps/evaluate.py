"""Scores each model channel on the test set of the data channel."""

import json
import os
import pickle

with open(os.path.join(os.environ["PAI_INPUT_DATA"], "test.json")) as file:
    test = json.load(file)
scores = {}
for name in ("forest", "neighbours"):
    with open(os.environ[f"PAI_INPUT_{name.upper()}"], "rb") as file:
        scores[name] = pickle.load(file).score(test["values"], test["kinds"])
with open(os.path.join(os.environ["PAI_OUTPUT_SCORES"], "scores.json"), "w") as file:
    json.dump(scores, file)
print(scores)
