"""Draw the pictures of the README from embedded data: ``python docs/make_figures.py``."""

from pathlib import Path

import matplotlib.pyplot as plt

from firstk.demo import embedded_data, fit_and_judge
from firstk.report import plot_curves


def draw(path: Path) -> None:
    """Draw the demo's first question: accuracy against k, beside the four baselines."""
    section = fit_and_judge(embedded_data())[1][0]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    plot_curves(section.curves, section.baselines, ax=axes)
    axes.set_title("Handwritten digits: 1-NN accuracy of the first k coordinates", loc="left", fontsize=11)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw(Path(__file__).parent / "images" / "digits.png")
