"""The methods: ours and peers, one file each. A method is a fit with settings to choose among.

Peers get the setting that is best on validation data for each length; ours has one code for all lengths, so its
settings are chosen once.
"""

from __future__ import annotations

from benchmarks.evidence.methods import (
    all_but_the_top,
    csr,
    in_bytes,
    lda,
    matryoshka_adaptor,
    matryoshka_loss,
    mrl_list,
    nested_autoencoder,
    ours,
    pca,
    random_dimensions,
    truncation,
    whitened_pca,
    zipf,
)
from benchmarks.evidence.methods.contract import Method

METHODS: tuple[Method, ...] = (
    *ours.METHODS,
    truncation.METHOD,
    random_dimensions.METHOD,
    pca.METHOD,
    whitened_pca.METHOD,
    all_but_the_top.METHOD,
    zipf.METHOD,
    lda.METHOD,
    mrl_list.METHOD,
    matryoshka_loss.METHOD,
    matryoshka_adaptor.METHOD,
    nested_autoencoder.METHOD,
    *in_bytes.METHODS,
    csr.METHOD,
)
