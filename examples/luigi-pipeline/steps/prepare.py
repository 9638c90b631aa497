"""Writes train.json and test.json into the output folder."""

import json
import os

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

digits = load_digits()
parts = train_test_split(digits.data.tolist(), digits.target.tolist(), test_size=0.25, random_state=0)
folder = os.environ["PAI_OUTPUT_DIR"]
for name, values, kinds in (("train", parts[0], parts[2]), ("test", parts[1], parts[3])):
    with open(os.path.join(folder, f"{name}.json"), "w") as file:
        json.dump({"values": values, "kinds": kinds}, file)
    print(name, len(values))
