"""What debian/ and /etc/default/monolock say, against what they are about. (`make deb-test` installs the packages.)"""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULTS = (ROOT / "deploy" / "default" / "monolock").read_text()


def settings():
    """Variable: (value, whether it is set or only an example)."""
    return {name: (value, not commented)
            for commented, name, value in re.findall(r"^(#?)(MONOLOCK_\w+)=(.*)$", DEFAULTS, re.M)}


def variables_of_the_server():
    """Variable: default."""
    listed = subprocess.run([os.environ["COMPLETIONS_BIN"], "list", "monolock"], check=True, capture_output=True, text=True)
    rows = [line.split("\t") for line in listed.stdout.splitlines()]
    return {variable: default for _, _, variable, default, _ in rows if variable}


def checked(env):
    return subprocess.run([os.environ["MONOLOCK_BIN"], "-check"], env=env, capture_output=True, text=True, timeout=30, check=False)


def test_the_settings_name_every_variable_and_no_other():
    assert set(settings()) == set(variables_of_the_server())


def test_examples_that_look_like_defaults_are_the_defaults():
    for name, default in variables_of_the_server().items():
        value, _ = settings()[name]
        if re.match(r"\d+m?s$|\d+m$|/|info$|text$", default):
            assert value == default, name


def test_the_server_takes_the_settings_as_they_are_installed():
    active = {name: value for name, (value, is_set) in settings().items() if is_set}
    assert active == {"MONOLOCK_LISTEN_ADDRESS": "127.0.0.1:7070"}
    assert checked(active).returncode == 0


def test_the_server_takes_every_example():
    """All at once: it finds only files that are not there (status 1), and nothing wrong with a value (status 2)."""
    done = checked({name: value for name, (value, _) in settings().items()})
    assert done.returncode == 1, done.stderr
    for line in done.stderr.splitlines():
        assert "/etc/monolock/" in line or "No such file" in line, line


def test_the_package_has_the_version_of_the_build():
    version = re.search(r"^project\(monolock VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    assert (ROOT / "debian" / "changelog").read_text().startswith(f"monolock ({version}")


def test_the_symbols_are_those_of_the_library():
    listed = set((ROOT / "src" / "client" / "libmonolock.symbols").read_text().split())
    packaged = re.findall(r"^ (\S+)@(MONOLOCK_\d+) ", (ROOT / "debian" / "libmonolock1.symbols").read_text(), re.M)
    node = re.search(r"^(MONOLOCK_\d+) \{", (ROOT / "src" / "client" / "libmonolock.map").read_text(), re.M)[1]
    assert {version for _, version in packaged} == {node}
    assert {symbol for symbol, _ in packaged} == listed | {node}


def test_the_library_package_is_called_after_the_soname():
    abi = re.search(r"^set\(monolock_abi_version (\d+)\)", (ROOT / "src" / "client" / "packaging.cmake").read_text(), re.M)[1]
    assert f"Package: libmonolock{abi}\n" in (ROOT / "debian" / "control").read_text()
    assert (ROOT / "debian" / "libmonolock1.symbols").read_text().startswith(f"libmonolock.so.{abi} libmonolock{abi} ")
