"""Trains a classifier with scikit-learn on two input channels, and writes a model channel. Needs no cloud account.

PAILOT_ENGINE=local python run.py                    # processes of this machine
PAILOT_ENGINE=docker IMAGE=my/sklearn python run.py  # containers, of an image with scikit-learn
"""

import csv
import os
from pathlib import Path

from sklearn.datasets import load_iris

from pailot.processor import Channel, MetricDefinition, Processor


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


flowers = load_iris()
rows = [[*values, kind] for values, kind in zip(flowers.data.tolist(), flowers.target.tolist(), strict=True)]
write(Path("data/train/flowers.csv"), [row for number, row in enumerate(rows) if number % 5])
write(Path("data/test/flowers.csv"), [row for number, row in enumerate(rows) if not number % 5])

processor = Processor(
    image_uri=os.environ.get("IMAGE", "python:3.12"),
    command="python3 train.py $PAI_USER_ARGS",
    source_dir="code",
    parameters={"trees": 20},
    base_job_name="flowers",
    instance_type="local",
)
processor.set_input_channels([Channel("train", required=True), Channel("test", required=True)])
processor.set_output_channels([Channel("model")])
processor.metric_definitions = [MetricDefinition("accuracy", r"accuracy: (\S+)")]
job = processor.run(inputs={"train": "data/train", "test": "data/test"}, outputs={"model": "results/model"})
print(job.status, job.metrics(), processor.get_outputs_data())
