"""Optional packages, one module each, behind the extra that installs them: dask, faiss, Qdrant, ONNX, and others.

What needs no extra lives elsewhere: search in `retrieval`, readers of files in `data`, saving in `encoder`.
"""
