"""Integrations with optional packages, one module each: dask, faiss, Qdrant, ONNX, and others.

Parts that need no extra are elsewhere: search in `retrieval`, readers of files in `data`, saving in `encoder`.
"""
