"""The tasks: each makes its parts from the vectors of one model, and leaves the test part sealed.

Files of vectors lie in the data folder, `*_minilm.npz` with labels, pairs and judgements, those of other models with
vectors alone; `python -m benchmarks.evidence.embed` makes those that are not there.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.evidence.data import Task
from benchmarks.evidence.tasks import banking77, images, out_of_domain, scifact, sts, unseen_classes

TASKS: dict[str, Callable[[str], Task]] = {
    "banking77 1-NN": banking77.nearest,
    "banking77 few-shot": banking77.few_shot,
    "banking77 clusters": banking77.clusters,
    "banking77 unseen classes": unseen_classes.task,
    "sts": sts.task,
    "scifact": scifact.task,
    "scifact official": scifact.official,
    "banking77 to scifact": out_of_domain.banking77_to_scifact,
    "sts to scifact": out_of_domain.sts_to_scifact,
    "scifact to banking77": out_of_domain.scifact_to_banking77,
    "scifact to sts": out_of_domain.scifact_to_sts,
    "fashion-mnist 1-NN": images.fashion_nearest,
    "fashion-mnist linear": images.fashion_linear,
    "cifar10 1-NN": images.cifar10_nearest,
    "cifar10 linear": images.cifar10_linear,
}
