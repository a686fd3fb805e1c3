"""``firstk diagnose``: which objective to fit on a file of vectors, what is wrong with them, and the command to run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from firstk.cli import _options as given
from firstk.cli._progress import row_progress, step_progress, warnings_as_notes
from firstk.data.stores import find_store
from firstk.exceptions import InvalidInputError
from firstk.words.choice import store_lines
from firstk.words.commands import COLUMN, VECTORS, file_in, options_of

if TYPE_CHECKING:
    from firstk.advice.diagnosis import Diagnosis, Gathered, Trials
    from firstk.advice.inputs import VectorSource
    from firstk.quality.evaluation import Evaluation

# Rows are copied to float64 on the way into the moments: smaller batches than elsewhere bound the memory.
BATCH_ROWS = 16384
# Rows that are read of files of more than twice as many, where their format lets others be skipped; and in one place.
SAMPLE_ROWS, SAMPLE_BLOCK = 2**18, 1024
# Rows whose neighbors are looked for in the forms of a store.
STORE_ROWS = 300


def diagnose(
    source: given.VectorsArgument,
    label: given.LabelOption = None,
    pairs: given.PairsOption = None,
    queries: given.QueriesOption = None,
    relevance: given.RelevanceOption = None,
    ids: given.IdOption = None,
    store: given.StoreOption = None,
    nan: given.NanOption = "refuse",
    explain: given.ExplainOption = False,
    json: given.JsonOption = False,
    quiet: given.QuietOption = False,
) -> None:
    """Try every objective that the data allow on a sample, rank them, and print the command to run next.

    Objectives are evaluated on held-out rows (or pairs, or queries) at 8, 16, 32 and 64 coordinates as float32; 'firstk
    fit' then tells what they keep in fewer bytes, next to PCA and SVD. Also named: copies, contradictory labels,
    columns that do not vary, and what else is wrong with the vectors. --explain adds intervals, norms and dimensions.
    --store says how well a store's own quantizers do on the vectors as they are.
    """
    from firstk.advice.diagnosis import diagnose_gathered

    if store is not None:
        store = find_store(store, "--store").name
    silent = quiet or json
    place = given.place_of_options(source, label, pairs, nan, queries, relevance, ids)
    with warnings_as_notes():
        gathered, trials, rows, total = _read(place, silent)
    with step_progress("comparing", quiet=silent) as say:
        found = diagnose_gathered(gathered, trials, progress=say)
    command = _command(found, place, rows)
    if store is not None and command:
        command = command.replace(" -o model", f" --store {store} -o model")
    found = replace(found, command=command, rows_in_file=total)
    if json:
        typer.echo(found.to_json())
        return
    if explain:
        typer.echo(f"{found.explain()}\n")
    typer.echo(str(found))
    if store is not None and find_store(store).forms:
        typer.echo("\n".join(store_lines(_as_they_are(gathered, store), model=False)))


def _as_they_are(gathered: Gathered, store: str) -> Evaluation:
    """Score the vectors of the sample in the forms of a store: recall of the ten neighbors of a few hundred rows."""
    from firstk.advice.baselines import plain_truncation
    from firstk.advice.evaluate import evaluate
    from firstk.data.task import Rows

    X = gathered.sample["X"].astype("float32")
    asked = min(STORE_ROWS, len(X) // 5)
    if asked < 1:
        raise InvalidInputError(f"--store looks for the neighbors of some rows among others. Got {len(X)} rows.")
    data = Rows(X[:asked], reference=Rows(X[asked:]))
    return evaluate(
        plain_truncation(X[:1]), data, store=store, ks=[X.shape[1]], baselines=False, draws=0, most_pairs=None
    )


def _read(place: VectorSource, quiet: bool) -> tuple[Gathered, Trials | None, VectorSource, int]:
    """Read the vectors, the pairs to compare objectives on, where objectives without pairs find their rows; count them.

    The number of rows is 0 where all were read that there are.
    """
    from firstk.advice.diagnosis import log_trials
    from firstk.advice.judgements import read_side
    from firstk.data.task import Search

    place.check()
    if not place.judged:
        gathered, total = _gathered(place, quiet)
        trials = None
        if place.queries is not None:
            trials = log_trials(Search(read_side(place.queries, place).X, gathered.sample["X"]))
        return gathered, trials, place, total
    from firstk.advice.diagnosis import gather, trials_of
    from firstk.advice.judgements import read_columns, read_judged

    if place.relevance is not None and (place.label is not None or place.labels is not None):
        raise InvalidInputError("Judgements take the place of labels: leave --label out, or --relevance.")
    judged = read_judged(place)
    rows = place
    if judged.store is None:  # pairs of vectors: the left sides are rows as well
        source, _, names = read_columns(
            None if place.pairs is None else place.source, place.pairs or place.relevance or ""
        )
        rows = replace(place, source=source, vectors=names[0], pairs=None, relevance=None)
    data = judged.data
    if isinstance(data, Search):
        X, trials = trials_of(None if judged.store is None else data.documents, None, data)
    else:
        assert data.scores is not None
        X, trials = trials_of(data.documents, (data.left, data.right, data.scores), None)
    return gather(X), trials, rows, 0


def _gathered(place: VectorSource, quiet: bool) -> tuple[Gathered, int]:
    """Read the file once, or a sample of a large one; what its labels are is settled by the first batch.

    Of a sample, the number of all rows comes with it; 0 where all were read.
    """
    from firstk.advice.diagnosis import gather_batches
    from firstk.advice.inputs import open_labeled

    found = open_labeled(place.source, vectors=place.vectors, label=place.label, labels=place.labels, nan=place.nan)
    table = found.table
    sample = found.spread(SAMPLE_ROWS, SAMPLE_BLOCK) if table.rows > 2 * SAMPLE_ROWS else None
    rows = table.rows if sample is None else SAMPLE_ROWS
    with row_progress(lambda: rows, quiet=quiet, what="reading") as progress:
        gathered = gather_batches(sample or found.batches(BATCH_ROWS), rows, table.width, "auto", progress)
    return gathered, 0 if sample is None else table.rows


def _command(found: Diagnosis, place: VectorSource, rows: VectorSource) -> str:
    """Return the ``firstk fit`` that fits what was chosen on all rows; empty where nothing was compared."""
    trial = None if found.ranking is None else found.ranking.chosen
    if trial is None:
        return ""
    where = place if trial.pairs else rows
    # Judgements evaluate an objective that does not learn from them; scored pairs do not.
    if not trial.pairs and not where.relevance:
        where = replace(where, pairs=None, by_row=False, ids=None)
    options = options_of(where)
    words = ["firstk", "fit", file_in(options), "--objective", trial.objective]
    for name, value in trial.settings.items():
        words += ["--set", f"objective.{name}={'none' if value is None else value}"]
    words += [] if trial.solver == "auto" else ["--set", f"solver={trial.solver}"]
    words += [] if trial.components is None else ["--components", str(trial.components)]
    if found.kind in ("labels", "targets"):
        words += ["--label", str(where.label or where.labels)]
    words += [word for name, value in options.items() if name not in (VECTORS, COLUMN) for word in (name, value)]
    return shlex.join([*words, "-o", "model"])
