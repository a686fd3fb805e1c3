"""A star-import has to work where no extra is installed."""

import subprocess
import sys


def test_star_import_needs_no_extra():
    code = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from firstk import *\nimport firstk\n"
        "assert PrefixEncoder and 'fit_sentence_transformer' in dir(firstk)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
