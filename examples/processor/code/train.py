"""The user's program: it reads its channels from the variables, and knows nothing of Pailot."""

import argparse
import csv
import json
import os
import pickle

from sklearn.ensemble import RandomForestClassifier


def read(folder):
    with open(os.path.join(folder, "flowers.csv")) as file:
        rows = [[float(value) for value in row] for row in csv.reader(file)]
    return [row[:-1] for row in rows], [int(row[-1]) for row in rows]


parser = argparse.ArgumentParser()
parser.add_argument("--trees", type=int, default=100)
options = parser.parse_args()

model = RandomForestClassifier(options.trees, random_state=0).fit(*read(os.environ["PAI_INPUT_TRAIN"]))
accuracy = model.score(*read(os.environ["PAI_INPUT_TEST"]))
print(f"accuracy: {accuracy:.3f}")

output = os.environ["PAI_OUTPUT_MODEL"]
with open(os.path.join(output, "model.pickle"), "wb") as file:
    pickle.dump(model, file)
with open(os.path.join(output, "report.json"), "w") as file:
    json.dump({"accuracy": accuracy, "trees": options.trees}, file)
