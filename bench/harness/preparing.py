"""What every measurement needs before it begins."""

import contextlib
import os
import pathlib
import tempfile

from .certificates import make_certificates
from .errors import CannotMeasure

OWN_PROGRAMS = ("load", "floor_server", "tls_floor_server", "in_memory")


@contextlib.contextmanager
def prepared(options):
    """The programs are there, and a scratch folder with certificates, for as long as this lasts."""
    check_programs(options)
    with tempfile.TemporaryDirectory(prefix="monolock-bench-") as folder:
        options.scratch = pathlib.Path(folder)
        make_certificates(options.scratch)
        yield


def check_programs(options):
    for program in [options.folder / name for name in OWN_PROGRAMS] + [options.server]:
        if not os.access(program, os.X_OK):
            raise CannotMeasure(f"{program} is not there: `make build` builds it")
