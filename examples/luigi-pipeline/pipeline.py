"""A pipeline of five tasks: prepare data, train two models at the same time, evaluate them, write a report.

    python pipeline.py                          # with luigi's own small scheduler
    luigid --port 8082 & python pipeline.py --scheduler-port 8082 --workers 2

`luigi.cfg` says `pai_url = local`: the jobs run on this machine. Write the address of a server there, and they run on it.
"""

import argparse
import os
import sys

import luigi

from pailot.luigi import PaiTask, ProcessorTask, ProtocolTask, TaskRole
from pailot.processor import Processor

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = sys.executable


class Prepare(PaiTask):
    """Splits the digits of scikit-learn into a training and a test set."""

    name = "digits-prepare"
    image = "python:3.12"
    tasks = [TaskRole("main", f"{PYTHON} {HERE}/steps/prepare.py", memoryMB=1024)]


class Train(ProtocolTask):
    """Trains one kind of model; the luigi parameters are the job's."""

    model = luigi.Parameter()
    size = luigi.IntParameter()
    job = os.path.join(HERE, "train.yaml")

    def requires(self):
        return Prepare()

    @property
    def overrides(self):
        return {
            "parameters.python": PYTHON,
            "parameters.steps": f"{HERE}/steps",
            "parameters.data": self.input().path,
            "parameters.output": self.output().path,
        }

    def output(self):
        return luigi.LocalTarget(os.path.join("results", f"{self.model}.pickle"))


class Evaluate(ProcessorTask):
    """Compares the models on the test set."""

    def requires(self):
        return {"data": Prepare(), "forest": Train("forest", 30), "neighbours": Train("neighbours", 5)}

    def processor(self):
        return Processor("python:3.12", "python3 evaluate.py", source_dir=f"{HERE}/steps", base_job_name="digits-evaluate")

    def inputs(self):
        return self.input()

    def outputs(self):
        return {"scores": os.path.abspath("results/scores")}


class Report(PaiTask):
    """Writes down which model is best."""

    name = "digits-report"
    image = "python:3.12"
    output_dir = os.path.abspath("results/report")

    @property
    def tasks(self):
        scores = self.input()["scores"].path
        return [TaskRole("main", f"{PYTHON} {HERE}/steps/report.py {scores} $PAI_OUTPUT_DIR", memoryMB=512)]

    def requires(self):
        return Evaluate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scheduler-port", type=int, help="port of luigid; without one, no scheduler is needed")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    central = {"scheduler_port": options.scheduler_port} if options.scheduler_port else {"local_scheduler": True}
    sys.exit(0 if luigi.build([Report()], workers=options.workers, **central) else 1)
