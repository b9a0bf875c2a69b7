"""Client of a Capstan controller's REST API, for scripts and notebooks: submit experiments, follow them, read results.

from capstan_client import Capstan

capstan = Capstan("http://127.0.0.1:8080")
experiment = capstan.submit(preset="small", sweep={"workload.flows.count": [10, 20]})
experiment.wait()
print(experiment.table())
"""

from capstan_client.client import Capstan
from capstan_client.experiment import Experiment, Progress
from capstan_client.http import CapstanError

__all__ = ["Capstan", "CapstanError", "Experiment", "Progress"]
