"""A file system of a chosen size that only one server sees, in a mount namespace of its own."""

import pathlib
import subprocess


class SmallDisk:
    """`prefix` goes before the server's command; `wait_mounted` before anything else once it runs.
    Raises OSError where mounting is not permitted."""

    def __init__(self, folder, size_kib):
        self._folder = pathlib.Path(folder)
        self._folder.mkdir()
        self._size = f"size={size_kib}k"
        self._pid = None
        tried = subprocess.run(self._mounting("true"), capture_output=True, text=True, timeout=20)
        if tried.returncode != 0:
            raise OSError(tried.stderr.strip())

    def _mounting(self, *command):
        script = f'mount -t tmpfs -o {self._size} monolock-test "$0" && exec "$@"'
        return ("unshare", "--mount", "sh", "-c", script, str(self._folder), *command)

    @property
    def prefix(self):
        return self._mounting()

    def entered_by(self, pid):
        self._pid = pid

    def path(self, name):
        """A file on the disk, as its server names it."""
        return self._folder / name

    def seen(self, name):
        """The same file, as everybody else reaches it."""
        return pathlib.Path(f"/proc/{self._pid}/root{self._folder}/{name}")

    def resize(self, size_kib):
        subprocess.run(
            ("nsenter", "-t", str(self._pid), "-m", "mount", "-o", f"remount,size={size_kib}k", str(self._folder)),
            check=True,
            timeout=20,
        )


