"""Reading parquet from object storage beside pyarrow alone: time and memory.

``python -m benchmarks.object_storage`` writes 1,000,000 x 384 float32 rows as parquet to an S3 server on this machine
and reads all vectors in batches: by `open_vectors`, and by pyarrow's own S3 file system and parquet reader, which also
yields batches and makes a matrix of each, in three settings. Each runs in a process of its own, in turn, three times.
The promise is at most 1.3 times pyarrow's least time, in bounded memory. ``--rows N`` does less.

The server is s3rver (``npm install -g s3rver``), which reads ranges from disk, or else moto's. moto answers a range by
copying the whole object first, so requests are dear, and their number counts more than on S3.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

from firstk.data.files import Layout, creating, open_vectors
from fixtures.object_storage import environment, free_port, make_bucket, running_server, s3_server

ROWS, WIDTH, BATCH = 1_000_000, 384, 65_536
MOST = 1.3
KEY = "bucket/rows.parquet"


def write(rows: int) -> None:
    """Write rows in blocks, row groups as firstk makes them."""
    rng = np.random.default_rng(0)
    with creating(f"s3://{KEY}", Layout("vectors", WIDTH, np.dtype(np.float32))) as writer:
        for start in range(0, rows, BATCH):
            writer.write(rng.normal(size=(min(BATCH, rows - start), WIDTH)).astype(np.float32), {})


def by_firstk() -> float:
    """Return the sum of all numbers, read by firstk."""
    return sum(float(batch.vectors.sum(dtype=np.float64)) for batch in open_vectors(f"s3://{KEY}").batches(BATCH))


def by_pyarrow(*, pre_buffer: bool = True, use_threads: bool = False) -> float:
    """Return the sum of all numbers, read by pyarrow."""
    from pyarrow import fs, parquet

    # moto needs more than the 3 seconds of pyarrow's default to answer for an object of this size.
    s3 = fs.S3FileSystem(endpoint_override=os.environ["AWS_ENDPOINT_URL"], region="us-east-1", request_timeout=60)
    total = 0.0
    with s3.open_input_file(KEY) as source:
        file = parquet.ParquetFile(source, pre_buffer=pre_buffer, page_checksum_verification=True)
        for batch in file.iter_batches(BATCH, use_threads=use_threads):
            total += float(batch.column(0).flatten().to_numpy().reshape(-1, WIDTH).sum(dtype=np.float64))
    return total


@contextlib.contextmanager
def moto() -> Iterator[dict[str, str]]:
    """Yield the variables by which clients find moto's server, which holds a bucket."""
    with s3_server() as endpoint:
        make_bucket(endpoint, "bucket")
        yield environment(endpoint)


@contextlib.contextmanager
def s3rver() -> Iterator[dict[str, str]]:
    """Yield the variables by which clients find a server that keeps objects on disk."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = f"s3rver -d {folder} -a 127.0.0.1 -p {port} --silent --configure-bucket bucket".split()
        with running_server(command, port) as endpoint:
            # The one key that this server knows; and it does not read checksums after the body of a request.
            key = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "S3RVER")
            yield environment(endpoint) | key | {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}


SERVERS = {"moto": moto, "s3rver": s3rver}
WORK = {
    "firstk": by_firstk,
    "pyarrow": by_pyarrow,
    "pyarrow, on all cores": partial(by_pyarrow, use_threads=True),
    "pyarrow, a column at a time": partial(by_pyarrow, pre_buffer=False, use_threads=True),
}


def peak() -> float:
    """Return the peak of memory of this process in MB; `getrusage` would count that of the parent before the start."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]


def worker(name: str) -> None:
    """Print seconds, memory above the start in MB, and the sum."""
    before, start = peak(), time.perf_counter()
    total = WORK[name]()
    print(time.perf_counter() - start, peak() - before, repr(total))


def main() -> int:
    """Run what the command line asks for."""
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--server", choices=SERVERS, default="s3rver" if shutil.which("s3rver") else "moto")
    asked = parser.parse_args()
    with SERVERS[asked.server]() as variables:
        os.environ.update(variables)
        start = time.perf_counter()
        write(asked.rows)
        took = time.perf_counter() - start
        print(f"{asked.rows} x {WIDTH} rows written to {asked.server} in {took:.1f} s", flush=True)
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in WORK}
        for _ in range(asked.times):
            for name, held in found.items():
                command = [sys.executable, "-m", "benchmarks.object_storage", "--worker", name]
                said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                held.append(tuple(map(float, said.split()[-3:])))  # type: ignore[arg-type]
                print(f"{name:27} {held[-1][0]:7.2f} s  {held[-1][1]:7.0f} MB above the start", flush=True)
    best = {name: min(seconds for seconds, _, _ in held) for name, held in found.items()}
    same = np.isclose(found["firstk"][0][2], found["pyarrow"][0][2], rtol=1e-9)
    ratio = best.pop("firstk") / min(best.values())
    met = ratio <= MOST and bool(same)
    print(
        f"firstk / pyarrow at its best {ratio:.2f} (at most {MOST}); same numbers: {same} {'met' if met else 'NOT MET'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
