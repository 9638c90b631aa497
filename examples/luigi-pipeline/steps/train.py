"""train.py MODEL SIZE DATA OUTPUT: trains a model, and moves it into place when it is whole."""

import json
import os
import pickle
import sys

from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

model, size, data, output = sys.argv[1:]
with open(os.path.join(data, "train.json")) as file:
    train = json.load(file)
kinds = {"forest": RandomForestClassifier, "neighbours": KNeighborsClassifier}
fitted = kinds[model](int(size)).fit(train["values"], train["kinds"])
os.makedirs(os.path.dirname(output), exist_ok=True)
with open(f"{output}.part", "wb") as file:
    pickle.dump(fitted, file)
os.replace(f"{output}.part", output)
print(f"trained {model}")
