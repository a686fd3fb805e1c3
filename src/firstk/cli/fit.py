"""``firstk fit``: from a file of vectors to a saved encoder, evaluated on held-out rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._base.atomic_file import beside, check_new
from firstk.cli._append import ModelToExtend, check_keeps_moments
from firstk.cli._notes import warnings_as_notes
from firstk.cli._options import (
    ByRowOption,
    FilterOption,
    ForceOption,
    IdOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    PairsOption,
    QueriesOption,
    QueryWeightOption,
    QuietOption,
    RelevanceOption,
    VectorsArgument,
    VectorsOption,
)
from firstk.cli._progress import looked_at, row_progress, step_progress
from firstk.cli._text import (
    advice_lines,
    baseline_glosses,
    judged_options,
    number_of,
    recorded_options,
    score_text,
    vector_options,
    were,
)
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk import contracts
    from firstk.encoder.curve import PrefixCurve
    from firstk.encoder.network import MLP
    from firstk.estimator.fit_files import StreamedFit
    from firstk.estimator.prefix_encoder import PrefixEncoder
    from firstk.evaluation.inputs import VectorSource
    from firstk.evaluation.records import HeldOutReport
    from firstk.moments.checkpoint import Checkpoint
    from firstk.objectives import GaussianNoise, Masking
    from firstk.orderings import SparsePrefix

# The options that no other command has: one name each, so that the command's signature reads as a list.
OBJECTIVES = (
    "From vectors alone: reconstruction (PCA), similarity (neighbors; also from pairs and judgements), denoising. With "
    "--label: error_bound, fisher or classification (needs torch) for classes, regression for numbers, mixture"
)
# Settings of objectives, in the order in which the command hands them on.
# An option that has another name than the setting: --keep is a share, in every command that has it.
_OTHER_NAMES = {"keep": "preserve"}
SETTINGS = ("shrinkage", "lam", "noise", "keep", "neighbor_weight", "fidelity", "reconstruction")

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")]
Objective = Annotated[str, typer.Option(help=f"What short codes should keep. {OBJECTIVES}.")]
HeldOut = Annotated[
    str,
    typer.Option(
        "--held-out",
        metavar="SHARE|FILE",
        help="Rows to evaluate on: a share (at most 2,000 rows), a file, or 0.",
    ),
]
Components = Annotated[
    int | None, typer.Option(min=1, help="Width of the code. Without it: all coordinates that carry signal.")
]
Ordering = Annotated[
    str,
    typer.Option(help="full_prefix (every length counts), sparse_prefix:8,16,32 (a list), or one of training."),
]
Solver = Annotated[str, typer.Option(help="auto, closed_form, quasi_newton or gradient.")]
Network = Annotated[str, typer.Option(help="The encoder: linear, mlp, or mlp:256,256 (trained, needs torch).")]
Shrinkage = Annotated[
    str | None, typer.Option(help="Of the covariance, for few rows: a number in [0, 1], none or auto.")
]
Lam = Annotated[float | None, typer.Option(help="mixture only: weight of reconstruction against labels.")]
Noise = Annotated[str | None, typer.Option(help="Of denoising: masking:SHARE_KEPT or gaussian:SIGMA.")]
Preserve = Annotated[
    str | None, typer.Option("--preserve", help="Of similarity without pairs: neighbors, dot_products or projections.")
]
NeighborWeight = Annotated[str | None, typer.Option(help="Of similarity with pairs: weight of mined ones, or auto.")]
Fidelity = Annotated[float | None, typer.Option(help="Of trained, scored pairs: weight of the full-width cosine.")]
Reconstruction = Annotated[
    float | None,
    typer.Option(help="Of fisher and classification: share of the vectors, for use beyond the labels; 0 to 1."),
]
Image = Annotated[str | None, typer.Option(help="Vectors are images of this shape: 28x28 or 32x32x3.")]
SourceModel = Annotated[str | None, typer.Option("--source-model", help="Name of the model that made the vectors.")]
CheckpointFile = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", help="Where moments are kept while rows are read; OUT.checkpoint."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint of a fit that was stopped while it read rows.")
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Let the workers of a dask cluster read and measure the files."),
]
Append = Annotated[
    Path | None,
    typer.Option(
        "--append",
        metavar="MODEL",
        help="Add the rows to those of a model that was saved with --save-moments; its settings hold.",
    ),
]
SaveMoments = Annotated[
    bool, typer.Option("--save-moments", help="Keep the moments with the model, so that --append can add rows later.")
]
BytesPerVector = Annotated[
    int | None,
    typer.Option("--bytes-per-vector", min=1, help="Recommend the best code in at most so many bytes; else 99 %."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed that draws the held-out rows, and of training.")]


def fit(
    source: VectorsArgument,
    out: Out,
    objective: Objective = "reconstruction",
    vectors: VectorsOption = None,
    label: LabelOption = None,
    labels: LabelsOption = None,
    pairs: PairsOption = None,
    queries: QueriesOption = None,
    relevance: RelevanceOption = None,
    ids: IdOption = None,
    by_row: ByRowOption = False,
    filter: FilterOption = None,
    query_weight: QueryWeightOption = None,
    held_out: HeldOut = "0.2",
    bytes_per_vector: BytesPerVector = None,
    components: Components = None,
    ordering: Ordering = "full_prefix",
    solver: Solver = "auto",
    network: Network = "linear",
    shrinkage: Shrinkage = None,
    lam: Lam = None,
    noise: Noise = None,
    preserve: Preserve = None,
    neighbor_weight: NeighborWeight = None,
    fidelity: Fidelity = None,
    reconstruction: Reconstruction = None,
    image: Image = None,
    source_model: SourceModel = None,
    seed: Seed = 0,
    append: Append = None,
    save_moments: SaveMoments = False,
    checkpoint: CheckpointFile = None,
    resume: Resume = False,
    dask: Dask = None,
    force: ForceOption = False,
    nan: NanOption = "refuse",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    context: typer.Context = None,  # type: ignore[assignment]  # typer fills it in; Python need not
) -> None:
    """Fit an encoder on a file of vectors, and save it with an evaluation of its prefixes.

    A fifth of the rows, at most 2,000, is held out. The encoder is fitted on the others; it, the raw vectors and four
    baselines are evaluated on the held-out rows. What to store is printed first: how many coordinates, in which
    precision, what that keeps of the raw vectors' score, and the command that does it. Without --bytes-per-vector it is
    the cheapest that keeps 99 % of that score; with it, the best in so many bytes.

    With --queries and --relevance it is evaluated by search: a fifth of the queries is held out, and looks among all
    rows. Objective similarity learns from the judgements of the other queries, all other objectives from the vectors.

    Not sure which objective? firstk diagnose tries them all, and ends with the fit to run.

    Closed forms stream, on all cores and in bounded memory; what has to be trained reads all rows. A fit that is
    stopped while it streams goes on with --resume, to the same bytes; one that is stopped while it trains leaves
    nothing, and starts again.

    With --append, the rows that are not held out are added to those of a saved model, exactly as if one fit had seen
    all of them.
    """
    from firstk import objectives
    from firstk.evaluation.inputs import VectorSource
    from firstk.moments.checkpoint import Checkpoint

    check_new(out, force=force, model=True)
    given = (shrinkage, lam, noise, preserve, neighbor_weight, fidelity, reconstruction)
    shown = looked_at(quiet or as_json)
    base = None if append is None else ModelToExtend.read(append, context)
    if base is not None:
        objective, source_model = base.objective_name(objective), source_model or base.source_model
    encoder = _posed(
        objective, given, label or labels or pairs, ordering, network,
        n_components=components, solver=solver, random_state=seed, verbose="auto" if shown else False,
    )  # fmt: skip
    place = VectorSource(
        source, vectors, label, labels, pairs, nan, queries, relevance, ids, by_row, filter, query_weight
    )
    if pairs is not None:
        encoder._posed(pairs=True)  # an objective that does not take pairs raises before anything is read
    # Similarity that is told what to keep of the vectors does not look at judgements.
    learns = preserve is None and objectives.resolve(encoder.objective).resolved(True).supervision == "pairs"
    if base is not None:  # rows are added to what the model learned from; judgements may still evaluate it
        learns = base.encoder._learns_pairs()
    from_pairs = pairs is not None or learns
    if base is not None:
        encoder = base.extended_as(encoder, pairs=place.judged and from_pairs)
    elif save_moments:
        check_keeps_moments(encoder, pairs=place.judged and from_pairs)
    kept = Checkpoint(checkpoint or beside(out, ".checkpoint"), resume=resume)
    _say_what_has_no_effect(
        encoder, {"--checkpoint": checkpoint, "--resume": resume}, pairs=place.judged and from_pairs
    )
    moments = save_moments or base is not None
    with warnings_as_notes():
        found = _run(
            encoder, place, out, held_out, image_of(image), seed, source_model, shown, kept, dask, from_pairs, moments,
            bytes_per_vector,
        )  # fmt: skip
    if base is not None:
        typer.echo(f"firstk: note: {base.added_to(encoder)}", err=True)
    typer.echo(_as_json(*found, out) if as_json else _as_text(*found, out, place))


def _posed(
    objective: str, given: tuple[str | float | None, ...], named: str | None, ordering: str, network: str, **others: Any
) -> PrefixEncoder:
    """Return the encoder that the options describe; `named` says where labels, targets or pairs are."""
    from firstk.estimator.prefix_encoder import PrefixEncoder

    goal = objective_of(objective, dict(zip(SETTINGS, given, strict=True)))
    if named is None and goal.supervision in ("labels", "targets", "labels or targets"):
        raise InvalidInputError(
            f"The objective '{goal.name}' learns from {goal.supervision}: name their column with --label, or their "
            "file with --labels."
        )
    return PrefixEncoder(objective=goal, ordering=ordering_of(ordering), network=network_of(network), **others)


def _run(
    encoder: PrefixEncoder,
    place: VectorSource,
    out: Path,
    held_out: str,
    image: tuple[int, ...] | None,
    seed: int,
    source_model: str | None,
    shown: bool,
    checkpoint: Checkpoint,
    dask: str | None,
    from_pairs: bool,
    moments: bool,
    bytes_per_vector: int | None,
) -> tuple[StreamedFit, HeldOutReport | None, int]:
    """Fit, evaluate and save, and count the rows that were dropped."""
    from firstk._base.concurrency import Alongside
    from firstk.encoder.storage.folder import EVALUATION, check_target
    from firstk.estimator.fit_files import fit_stream
    from firstk.evaluation.fit_task import open_fit
    from firstk.evaluation.held_out import evaluate_fit, steps_of
    from firstk.evaluation.recommending import Limits

    check_target(out)  # before the work, not after it
    task = open_fit(place, held_out, seed, from_pairs=from_pairs)
    stream = task.stream
    if dask is not None and place.labels is not None:
        raise InvalidInputError(
            "Workers of a dask cluster read labels from a column of the files: --label, not --labels."
        )
    reading = row_progress(
        lambda: stream.rows, quiet=not shown, what="reading", row_bytes=stream.width * stream.itemsize
    )
    with reading as progress, _telling_how_to_go_on(checkpoint), _cluster(dask) as elsewhere:
        done = fit_stream(
            encoder, stream.chunks, task.parts, task.held, checkpoint=checkpoint, progress=progress,
            elsewhere=elsewhere, documents=task.documents,
        )  # fmt: skip
    encoder.set_params(verbose=False)  # whether a bar was shown is no part of the model
    dropped, done = task.dropped(done), task.searched(done)
    if not done.held:
        encoder.save(out, source_model=source_model, moments=moments)
        return done, None, dropped
    provenance = task.provenance(done, place, image)
    evaluating = step_progress(lambda: steps_of(done), quiet=not shown, what="evaluating")
    with evaluating as begin, Alongside() as thread:
        profile = thread.submit(done.profile)
        limits = None if bytes_per_vector is None else Limits(bytes_per_vector=bytes_per_vector)
        found = evaluate_fit(done, provenance, begin, limits, thread)
    found = replace(found, options=recorded_options(place, shared=True))
    curve = found.comparisons[0].ours if found.comparisons else None
    encoder.save(
        out,
        curve=curve,
        recommendation=found.recommendation,
        source_model=source_model,
        extra={EVALUATION: found.to_json()},
        moments=moments,
        held_out=profile.result(),
    )
    return done, found, dropped


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


def _say_what_has_no_effect(encoder: PrefixEncoder, asked: Mapping[str, object], *, pairs: bool) -> None:
    """Say before the work that training keeps no checkpoint, to those who count on one."""
    given = [option for option, value in asked.items() if value]
    if not given or not encoder._pose(pairs=pairs).solver.trains:
        return
    have = "has" if len(given) == 1 else "have"
    typer.echo(
        f"firstk: note: {' and '.join(given)} {have} no effect here: this fit is trained, no checkpoint is kept, "
        "and it starts from the beginning. In Python, Gradient(checkpoint=..., resume=True) goes on.",
        err=True,
    )


# -- what is printed -------------------------------------------------------------------------------------------


def _as_json(done: StreamedFit, report: HeldOutReport | None, dropped: int, out: Path) -> str:
    encoder = done.encoder.encoder_
    found: dict[str, Any] = {
        "model": str(out),
        "objective": encoder.config["objective"],
        "settings": encoder.config["settings"],
        "rows": encoder.config["rows"],
        "dropped": dropped,
        "held_out": len(next(iter(done.held.values()))) if done.held else 0,
        "width": encoder.p,
        "components": encoder.d,
    }
    if report is not None and report.comparisons:
        lead = report.comparisons[0]
        found |= {
            "metric": lead.ours.metric,
            "recommendation": None if report.recommendation is None else report.recommendation.to_dict(),
            "smallest": {f"{share:g}": k for share, k in lead.ours.smallest_lengths().items() if k is not None},
            "curve": lead.ours.to_dict(),
            "baselines": [curve.to_dict() for curve in lead.baselines],
        }
    return json.dumps(found | {"notes": list(report.notes) if report else []}, ensure_ascii=False)


def _as_text(done: StreamedFit, report: HeldOutReport | None, dropped: int, out: Path, place: VectorSource) -> str:
    from firstk.encoder.naming import learned_from, objective_name
    from firstk.metrics.curve import explained

    encoder = done.encoder.encoder_
    lines = [
        f"{objective_name(encoder.config)}: {number_of(encoder.d, 'coordinate')} of {encoder.p:,}, fitted on "
        f"{number_of(encoder.config['rows'], learned_from(encoder.config))} ({encoder.config['solver']})."
    ]
    if dropped:
        lines.append(f"{number_of(dropped, 'row')} with NaN, infinity or missing numbers {were(dropped)} left out.")
    if report is None:
        lines += [
            f"Nothing was held out, so nothing was evaluated. Saved in {out}. Next:",
            f"  {_curve_of_test(out, place)}",
        ]
        return "\n".join(lines)
    if report.comparisons:
        options, judged = vector_options(place), judged_options(place)
        lines += ["", *advice_lines(report.recommendation, out, place.source, options=options, judged=judged), ""]
    lines += [report.held_out, *report.notes, ""]
    if report.comparisons:
        lead = report.comparisons[0]
        lines += [explained(lead.ours.metric), *_table((lead.ours, *lead.baselines), encoder.p), ""]
    lines += [f"Saved in {out}. A page to forward:", f"  firstk report {out} -o report.html"]
    return "\n".join(lines)


def _curve_of_test(out: Path, place: VectorSource) -> str:
    """Return the command that evaluates on rows of one's own, with the options by which the fit found its columns."""
    given = {"--vectors": place.vectors, "--label": place.label}
    words = ["firstk", "curve", str(out), "TEST", *(word for pair in given.items() if pair[1] for word in pair)]
    # A file of labels goes with the rows of VECTORS, so TEST needs another one.
    words += ["--labels", "TEST_LABELS"] if place.labels else []
    words += ["--pairs", "TEST_PAIRS"] if place.pairs else []
    if place.relevance:  # other queries of the same store
        words[3] = str(place.source)
        words += ["--relevance", "TEST_RELEVANCE"]
    words += ["--queries", "TEST_QUERIES"] if place.queries else []
    words += ["--id", place.ids] if place.ids else ["--by-row"] if place.by_row else []
    return shlex.join(map(str, words))


def _table(curves: Iterable[PrefixCurve], p: int) -> list[str]:
    curves = list(curves)
    lead = curves[0]
    shown = [k for k in lead.k if k & (k - 1) == 0 or k == lead.k[-1]][-8:]
    wide = max(len(curve.label) for curve in curves) + 2
    lines = [f"{lead.metric} at k".ljust(wide + 2) + "".join(f"{k:>8}" for k in shown)]
    for curve in curves:
        scores = "".join(f"{score_text(curve.at(k), 3):>8}" if k in curve.k else " " * 8 for k in shown)
        lines.append(f"  {curve.label:<{wide}}{scores}")
    if lead.input_score is not None:
        lines.append(f"  {'raw vectors':<{wide}}{score_text(lead.input_score, 3):>8} with all {p} numbers")
    return [*lines, *baseline_glosses(curves[1:])]


# -- what the words of options mean ----------------------------------------------------------------------------------


def objective_of(name: str, given: dict[str, str | float | None]) -> contracts.Objective:
    """Return the objective of that name with the settings that were given; None means that one was not.

    A setting that the objective does not have raises, with the objectives that have it.
    """
    from firstk import objectives
    from firstk._base.checks import check_choice

    check_choice(name, objectives.PUBLIC, "--objective", "firstk fit")
    settings = {
        option: _MEANINGS[option](str(word)) if option in _MEANINGS else word
        for option, word in given.items()
        if word is not None
    }
    own = {f.name for f in fields(objectives.PUBLIC[name])}
    for option in settings:
        if option not in own:
            having = [other for other, kind in objectives.PUBLIC.items() if option in {f.name for f in fields(kind)}]
            raise InvalidInputError(
                f"{spelled(option)} is no setting of objective '{name}'. It belongs to {', '.join(having)}: choose "
                f"one of them with --objective, or leave {spelled(option)} out."
            )
    return objectives.resolve(objectives.PUBLIC[name](**settings))


def _shrinkage(word: str) -> str | float | None:
    return {"auto": "auto", "none": None}[word] if word in ("auto", "none") else _number(word, "shrinkage", _SHRINKAGE)


def _neighbor_weight(word: str) -> str | float:
    return word if word == "auto" else _number(word, "neighbor_weight", "'auto' or a number in [0, 1]")


def noise_of(word: str) -> GaussianNoise | Masking:
    """Return the noise that ``masking:0.5`` (share kept) or ``gaussian:0.1`` (sigma) names."""
    from firstk.objectives import GaussianNoise, Masking

    name, _, value = word.partition(":")
    kinds = {"masking": Masking, "gaussian": GaussianNoise}
    allowed = "masking:SHARE_KEPT or gaussian:SIGMA, such as masking:0.5"
    if name not in kinds:
        raise _bad_option("noise", allowed, word)
    return kinds[name](_number(value, "noise", allowed)) if value else kinds[name]()


def ordering_of(word: str) -> str | SparsePrefix:
    """Return the ordering that a name stands for; ``sparse_prefix:8,16,32`` brings its list."""
    from firstk.orderings import SparsePrefix

    name, _, lengths = word.partition(":")
    if name != SparsePrefix.name:
        return word
    return SparsePrefix(_whole_numbers(lengths, ",", "ordering", "sparse_prefix:8,16,32", word))


def network_of(word: str) -> str | MLP:
    """Return the network that a name stands for; ``mlp:256,256`` brings the widths of its hidden layers."""
    name, _, widths = word.partition(":")
    if name != "mlp" or not widths:
        return word
    from firstk.encoder.network import MLP

    return MLP(hidden=tuple(_whole_numbers(widths, ",", "network", "linear, mlp or mlp:256,256", word)))


def image_of(word: str | None) -> tuple[int, ...] | None:
    """Return the shape that ``28x28`` or ``32x32x3`` names; None stays None."""
    if word is None:
        return None
    allowed = "ROWSxCOLUMNS or ROWSxCOLUMNSx3, such as 28x28"
    shape = tuple(_whole_numbers(word, "x", "image", allowed, word))
    if len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,)):
        raise _bad_option("image", allowed, word)
    return shape


_SHRINKAGE = "'auto', 'none' or a number in [0, 1]"
# What the words of an option stand for, where they are not taken as they are.
_MEANINGS: dict[str, Callable[[str], object]] = {
    "shrinkage": _shrinkage,
    "neighbor_weight": _neighbor_weight,
    "noise": noise_of,
}


def spelled(setting: str) -> str:
    """Return the option of a setting, as it is typed."""
    return f"--{_OTHER_NAMES.get(setting, setting).replace('_', '-')}"


def _bad_option(option: str, allowed: str, word: str) -> InvalidInputError:
    from firstk._base.checks import bad_parameter  # brings numpy, which --help does without

    return bad_parameter(spelled(option), "firstk fit", allowed, word)


def _number(word: str, option: str, allowed: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise _bad_option(option, allowed, word) from None


def _whole_numbers(text: str, sign: str, option: str, allowed: str, word: str) -> list[int]:
    parts = text.split(sign)
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise _bad_option(option, allowed, word)
    return [int(part) for part in parts]
