"""``firstk fit``: from a file of vectors to a saved encoder, evaluated on held-out rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._base.atomic_file import beside, check_new
from firstk.cli import _options as options
from firstk.cli._append import ModelToExtend
from firstk.cli._progress import looked_at, row_progress, step_progress, warnings_as_notes
from firstk.exceptions import InvalidInputError
from firstk.words.choice import answer, explanation, further_lines, lengths_table, store_lines
from firstk.words.commands import curve_command, next_commands, options_of, recorded_options
from firstk.words.terms import about_metric
from firstk.words.text import number_of, were

if TYPE_CHECKING:
    from firstk.advice.records import Report
    from firstk.data.task import Task
    from firstk.estimator.prefix_encoder import PrefixEncoder
    from firstk.moments.checkpoint import Checkpoint

# Seconds of an evaluation from which on it is said how long it will take.
WORTH_SAYING = 20
# Pairs of rows and stored rows that are compared in the forms of a store.
STORE_PAIRS = 20_000_000
# Numbers of the rows that are searched as a store does.
STORE_NUMBERS = 2**26
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")]
Objective = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="reconstruction (PCA), similarity (also from pairs or judgements), denoising; with --label error_bound, "
        "fisher, classification, regression, mixture.",
    ),
]
HeldOut = Annotated[
    str,
    typer.Option(metavar="SHARE|FILE", help="Share (at most 2,000), file, or 0."),
]
Components = Annotated[int | None, typer.Option(min=1, metavar="N", help="Width of the code.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="As in Python: objective.shrinkage=auto, ordering=sparse_prefix:8,16,32, save.moments=true. Repeatable.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a fit that was stopped.")]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Let a dask cluster read the files.")]
Append = Annotated[Path | None, typer.Option(metavar="MODEL", help="Add rows to a model saved with save.moments.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the split and of training.")]


def fit(
    source: options.VectorsArgument,
    out: Out,
    objective: Objective = "reconstruction",
    label: options.LabelOption = None,
    queries: options.QueriesOption = None,
    relevance: options.RelevanceOption = None,
    pairs: options.PairsOption = None,
    ids: options.IdOption = None,
    keep: options.KeepOption = None,
    bytes_per_vector: options.BytesPerVectorOption = None,
    store: options.StoreOption = None,
    held_out: HeldOut = "0.2",
    components: Components = None,
    settings: Settings = None,
    seed: Seed = 0,
    append: Append = None,
    resume: Resume = False,
    dask: Dask = None,
    nan: options.NanOption = "refuse",
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    explain: options.ExplainOption = False,
    context: typer.Context = None,  # type: ignore[assignment]  # typer fills it in; Python need not
) -> None:
    """Fit an encoder on a file of vectors, evaluate it on held-out rows, and say what to store.

    A fifth of the rows or queries is held out. Only objective similarity learns from judgements. Not sure which
    objective? firstk diagnose tries them all.
    """
    from firstk.advice.evaluate import expected_seconds
    from firstk.advice.fit_report import report_on
    from firstk.advice.read import open_task
    from firstk.data.stores import find_store
    from firstk.data.task import Rows
    from firstk.encoder.storage.folder import EVALUATION, check_target
    from firstk.moments.checkpoint import Checkpoint
    from firstk.quality.choice import Limits

    check_new(out, force=force, model=True)
    if store is not None:
        store = find_store(store, "--store").name
    if held_out == "0" and (keep is not None or bytes_per_vector is not None):
        raise InvalidInputError("--keep and --bytes-per-vector choose by held-out rows: leave --held-out 0 out.")
    shown = looked_at(quiet or as_json)
    given, saved = options.save_settings(settings or ())
    base = None if append is None else ModelToExtend.read(append, context)
    if base is not None:
        objective = base.objective_name(objective)
        saved = {"source_model": base.encoder.encoder_.record.source_model} | saved | {"moments": True}
    encoder = options.encoder_of(
        objective, given, n_components=components, random_state=seed, verbose="auto" if shown else False
    )
    place = options.place_of_options(source, label, pairs, nan, queries, relevance, ids)
    from_pairs = _learns_pairs(encoder, place, given, base)
    if base is not None:
        encoder = base.extended_as(encoder, given, pairs=from_pairs)
    elif saved.get("moments") and encoder.problem(pairs=from_pairs).solver.trains:
        raise InvalidInputError(
            "--set save.moments has no use for this fit: it is trained on the rows themselves, and nothing can be "
            "added to it. Leave it out, or choose an objective with a closed form, such as fisher."
        )
    kept = Checkpoint(beside(out, ".checkpoint"), resume=resume)
    if resume and encoder.problem(pairs=from_pairs).solver.trains:
        typer.echo(
            "firstk: note: --resume has no effect here: this fit is trained, no checkpoint is kept, and it starts from "
            "the beginning. In Python, Gradient(checkpoint=..., resume=True) goes on.",
            err=True,
        )
    check_target(out)  # before the work, not after it
    # Ten neighbors of a few hundred rows tell forms of a store apart by a few percent.
    evaluated = {} if store is None else {"store": store, "most_pairs": STORE_PAIRS}
    limits = Limits(keep, bytes_per_vector=bytes_per_vector)
    with warnings_as_notes():
        task = open_task(place, held_out if from_pairs or not place.judged or held_out == "0" else "1", seed)
        _learn(encoder, task, kept, dask, shown)
        report = None
        if task.held_out is not None:
            if store is not None:
                _look_among_all(task)
            if not (quiet or as_json) and (seconds := expected_seconds(encoder.encoder_, task.held_out)) > WORTH_SAYING:
                typer.echo(f"firstk: evaluating takes about {seconds:.0f} seconds.", err=True)
            with step_progress("evaluating", quiet=not shown) as begin:
                report, _ = report_on(encoder, task, limits, settings=evaluated, progress=begin)
            notes = tuple(map(options.in_options, report.notes))
            report = replace(report, notes=notes, options=recorded_options(place, shared=True))
        if report is not None:
            saved["curve"] = report.lead.curve() if report.evaluations else None
            saved["held_out"] = (task.held_out.X, task.held_out.y) if isinstance(task.held_out, Rows) else None
            saved |= {"choice": report.choice, "extra": {EVALUATION: report.to_json()}}
        encoder.save(out, **saved)
    if base is not None:
        typer.echo(f"firstk: note: {base.added_to(encoder)}", err=True)
    printed = (
        _as_json(encoder, task, report, out) if as_json else "\n".join(_lines(encoder, task, report, out, explain))
    )
    typer.echo(printed)


def _look_among_all(task: Task) -> None:
    """Let held-out rows be looked up among all others, as in a store, and not among a sample; within some memory."""
    from numpy import arange, setdiff1d
    from numpy.random import default_rng

    from firstk.estimator.fit_files import Stream

    stream = task.train
    if isinstance(stream, Stream) and len(stream.parts.held):
        others = setdiff1d(arange(stream.rows), stream.parts.held)
        most = STORE_NUMBERS // task.files.width
        if len(others) > most:  # in the order of the file
            others = others[default_rng(0).choice(len(others), most, replace=False)]
            others.sort()
        (stream.reference,) = stream.take([others])


def _learns_pairs(encoder: PrefixEncoder, place: Any, settings: Any, base: ModelToExtend | None) -> bool:
    """Tell whether the fit learns from pairs or judgements; raise for an objective that needs what is not there."""
    from firstk import objectives
    from firstk.data.task import Pairs

    goal = objectives.resolve(encoder.objective if base is None else base.encoder.objective)
    if place.label is None and place.labels is None and goal.supervision in ("labels", "targets", "labels or targets"):
        raise InvalidInputError(
            f"The objective '{goal.name}' learns from {goal.supervision}: name their column with --label, or "
            "their file."
        )
    if base is not None:  # rows are added to what the model learned from; judgements may still evaluate it
        return base.encoder.learns_from is Pairs
    if place.pairs is not None:
        encoder.problem(pairs=True)  # an objective that does not take pairs raises before anything is read
        return True
    # Similarity that is told what to keep of the vectors does not look at judgements.
    told = any(word.replace(" ", "").startswith("objective.keep=") for word in settings)
    return bool(place.judged and encoder.takes_pairs and not told)


def _learn(encoder: PrefixEncoder, task: Task, kept: Checkpoint, dask: str | None, shown: bool) -> None:
    """Fit, or add to what a model has seen."""
    from firstk.data.task import Pairs, Search
    from firstk.estimator.fit_files import Stream, fit_stream, raise_if_interrupted

    train = task.train
    if isinstance(train, Stream):
        if dask is not None and task.files.place.labels is not None:
            raise InvalidInputError(
                "Workers of a dask cluster read labels from a column of the files, not from a file."
            )
        reading = row_progress(lambda: task.files.rows, quiet=not shown, what="reading")
        with reading as progress, _telling_how_to_go_on(kept), _cluster(dask) as elsewhere:
            fit_stream(encoder, train, checkpoint=kept, progress=progress, elsewhere=elsewhere)
    elif encoder.learns_from is None:
        encoder.fit(train)
    elif isinstance(train, Pairs):
        encoder.partial_fit_pairs(train.left, train.right, train.scores)
    elif isinstance(train, Search):
        pairs = train.positives
        if encoder.learns_from is Pairs:
            encoder.partial_fit_pairs(pairs.left, pairs.right)
        else:
            encoder.partial_fit(train.documents)
    raise_if_interrupted(encoder)
    encoder.set_params(verbose=False)  # whether a bar was shown is no part of the model


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Give what lets a cluster gather the rows; None where no address is given."""
    if address is None:
        yield None
        return
    from firstk._base.checks import require

    distributed = require("distributed", "dask", "Fitting on a dask cluster")
    from firstk.integrations.dask import gather

    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"There is no dask scheduler at '{address}' ({error}).") from None
    with client:
        yield gather


@contextmanager
def _telling_how_to_go_on(kept: Checkpoint) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if Path(kept.path).exists():
            typer.echo(f"firstk: stopped; moments so far are in {kept.path}. Go on with --resume.", err=True)
        raise


# -- what is printed -------------------------------------------------------------------------------------------


def _as_json(encoder: PrefixEncoder, task: Task, report: Report | None, out: Path) -> str:
    fitted = encoder.encoder_
    found: dict[str, Any] = {
        "model": str(out),
        "objective": fitted.record.objective,
        "settings": fitted.record.settings,
        "rows": fitted.record.rows,
        "dropped": getattr(task.train, "dropped", 0),
        "held_out": 0 if task.held_out is None else task.held_out.n,
        "width": fitted.p,
        "components": fitted.d,
    }
    if report is not None and report.evaluations:
        found |= {
            "metric": report.lead.metric,
            "choice": None if report.choice is None else report.choice.to_dict(),
            "curve": report.lead.curve().to_dict(),
            "baselines": [curve.to_dict() for curve in report.lead.baselines],
        }
    return json.dumps(found | {"notes": list(report.notes) if report else []}, ensure_ascii=False)


def _lines(encoder: PrefixEncoder, task: Task, report: Report | None, out: Path, explain: bool) -> Iterator[str]:
    """Yield the answer and the table of lengths; with `explain`, all there is to say."""
    fitted = encoder.encoder_
    if report is None:
        yield f"Nothing was held out, so nothing was evaluated. Saved in {out}. Next:"
        yield f"  {curve_command(out, task.files.place)}"
    elif report.evaluations:
        yield from [] if report.choice is None else answer(report.choice)
        yield from (f"  {line}" for line in next_commands(report.choice, out, options_of(task.files.place)))
        yield ""
        yield from store_lines(report.lead) if report.lead.store else lengths_table(report.lead, fitted.p)
    yield ""
    yield (
        f"{fitted.record.title}: {number_of(fitted.d, 'coordinate')} of {fitted.p:,}, fitted on "
        f"{number_of(fitted.record.rows or 0, fitted.record.unit)} ({fitted.record.solver}). Saved in {out}."
    )
    if dropped := getattr(task.train, "dropped", 0):
        yield f"{number_of(dropped, 'row')} with NaN, infinity or missing numbers {were(dropped)} left out."
    if report is None:
        return
    if explain:
        yield from [] if report.choice is None else explanation(report.choice)
        yield options.in_options(report.held_out)
        yield from report.notes
        if report.evaluations:
            yield about_metric(report.lead.metric)
            yield from further_lines(report.evaluations[1:])
    else:
        yield from map(options.in_options, task.files.notes)
    yield f"A page to forward: firstk report {out} -o report.html" + ("" if explain else ". More: --explain")
