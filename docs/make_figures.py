"""Draw the pictures of the README from embedded data: ``python docs/make_figures.py``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from firstk import demo
from firstk.baselines import BASELINES
from firstk.data import load_digits, split
from firstk.report import plot_curves


def draw(path: Path) -> None:
    """Draw the demo's first question: accuracy against k, beside the four baselines."""
    digits = load_digits()
    data = split(digits.X, digits.y, fractions=(0.6, 0.2, 0.2), centre=False)
    question = demo.QUESTIONS[0]
    with demo._bar(False, 1) as bar:
        encoders = {name: demo._fit(name, data, bar) for name in question.fits}
        baselines = {name: make(data.X_train) for name, make in BASELINES.items()}
        section = demo._section(question, encoders, baselines, data, bar)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    plot_curves(section.curves, section.baselines, ax=axes)
    axes.set_title("Handwritten digits: 1-NN accuracy of the first k coordinates", loc="left", fontsize=11)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw(Path(__file__).parent / "images" / "digits.png")
