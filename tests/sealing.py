"""Forging saved models: a config.json of any content whose digest is right, so that only its content can be refused."""

from __future__ import annotations

import hashlib
import json


def seal(model, config):
    """Write `config` as the config.json of a model, sealed as docs/saved-models.md says."""
    config = {name: value for name, value in config.items() if name != "digest"}
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    (model / "config.json").write_text(json.dumps(config | {"digest": hashlib.sha256(text.encode()).hexdigest()}))
