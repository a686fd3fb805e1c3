"""FullPrefixLoss inside sentence-transformers' own trainer."""

from __future__ import annotations

import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")
pytest.importorskip("datasets", reason="needs the extra 'text'")
pytest.importorskip("accelerate", reason="needs the extra 'text'")

import numpy as np
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses as stock

from firstk.integrations.sentence_transformers import FullPrefixLoss


def train(model, data, loss, folder, steps=12, report_to=()):
    args = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=16,
        learning_rate=2e-3,
        warmup_steps=0,
        lr_scheduler_type="constant",
        logging_steps=3,
        eval_strategy="steps",
        eval_steps=steps,
        report_to=list(report_to),
        save_strategy="no",
        seed=0,
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = SentenceTransformerTrainer(model=model, args=args, train_dataset=data, eval_dataset=data, loss=loss)
    trainer.train()
    return trainer.state.log_history


def pairs(sentences):
    texts = sentences(48)
    return Dataset.from_dict({"anchor": texts, "positive": [" ".join(reversed(text.split()[1:])) for text in texts]})


@pytest.mark.parametrize("cached", [False, True])
def test_training_lowers_every_logged_prefix(tiny_model, sentences, tmp_path, cached):
    model = tiny_model()
    given = (
        stock.CachedMultipleNegativesRankingLoss(model, mini_batch_size=8)
        if cached
        else stock.MultipleNegativesRankingLoss(model)
    )
    logs = train(model, pairs(sentences), FullPrefixLoss(model, given, log_prefixes=[2, 8, 32]), tmp_path)
    steps = [entry for entry in logs if "full_prefix" in entry]
    (judged,) = [entry for entry in logs if "eval_full_prefix" in entry]
    for k in (2, 8, 32):
        assert steps[-1][f"loss_at_{k}"] < steps[0][f"loss_at_{k}"]
        assert np.isfinite(judged[f"eval_loss_at_{k}"])
    for entry in steps:  # what is lowered is the sum over prefixes and nothing else; logs are rounded
        assert entry["loss"] == pytest.approx(entry["full_prefix"], abs=2e-3)


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb"])
def test_trackers_get_the_loss_of_each_prefix(tiny_model, sentences, tmp_path, monkeypatch, tracker):
    pytest.importorskip(tracker, reason=f"needs the package '{tracker}'")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    model = tiny_model()
    loss = FullPrefixLoss(model, stock.MultipleNegativesRankingLoss(model), log_prefixes=[2, 8])
    logs = train(model, pairs(sentences), loss, tmp_path, steps=6, report_to=[tracker])
    last = [entry for entry in logs if "full_prefix" in entry][-1]
    if tracker == "wandb":
        import wandb

        told = {name: wandb.run.summary[name] for name in ("train/loss_at_2", "train/loss_at_8", "eval/loss_at_8")}
        wandb.finish()
        assert list(tmp_path.glob("wandb/offline-run-*/*.wandb")), "nothing was sent"
    else:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(tmp_path / "board")).Reload()
        told = {
            name: events.Scalars(name)[-1].value for name in ("train/loss_at_2", "train/loss_at_8", "eval/loss_at_8")
        }
    for k in (2, 8):
        assert told[f"train/loss_at_{k}"] == pytest.approx(last[f"loss_at_{k}"], abs=1e-3)
    assert np.isfinite(told["eval/loss_at_8"])


def test_a_classifier_learns_beside_the_model(tiny_model, sentences, tmp_path):
    model, texts = tiny_model(), sentences(48)
    data = Dataset.from_dict({"a": texts[:24], "b": texts[24:], "label": [i % 3 for i in range(24)]})
    given = stock.SoftmaxLoss(model, 32, num_labels=3)
    before = given.classifier.weight.detach().clone()
    logs = train(model, data, FullPrefixLoss(model, given), tmp_path, steps=6)
    assert not np.allclose(before.numpy(), given.classifier.weight.detach().numpy())
    assert all(np.isfinite(entry["loss"]) for entry in logs if "loss" in entry)


def test_scored_pairs_and_the_model_card(tiny_model, sentences, tmp_path):
    model, texts = tiny_model(), sentences(48)
    data = Dataset.from_dict({"a": texts[:24], "b": texts[24:], "score": np.linspace(0, 1, 24).tolist()})
    loss = FullPrefixLoss(model, stock.CoSENTLoss(model), omega="uniform")
    train(model, data, loss, tmp_path, steps=3)
    model.save_pretrained(str(tmp_path / "model"))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "FullPrefixLoss" in card
    assert '"omega": "uniform"' in card


@pytest.mark.parametrize("log_prefixes", [(), (4,)])
def test_an_adaptive_layer_loss_around_it(tiny_model, sentences, log_prefixes):
    model = tiny_model().eval()
    inner = FullPrefixLoss(model, stock.MultipleNegativesRankingLoss(model), log_prefixes=log_prefixes)
    texts = sentences(6)
    columns = [model.preprocess(texts[:3]), model.preprocess(texts[3:])]
    last = stock.AdaptiveLayerLoss(model, inner, prior_layers_weight=0.0, kl_temperature=0.0)
    alone = inner([dict(column) for column in columns])
    alone = alone["full_prefix"] if log_prefixes else alone
    found = last([dict(column) for column in columns], None)
    assert found.item() == pytest.approx(alone.item(), rel=1e-6)
    layers = stock.AdaptiveLayerLoss(model, inner)
    layers([dict(column) for column in columns], None).backward()
    assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())
    assert any(part.grad is not None and part.grad.any() for part in model.parameters())
