"""A whole installation: what is in it, and that nothing is left out of the components that packages are made of."""

import os
import re
import subprocess

import pytest

EXPECTED = {
    "server": {
        "bin/monolock", "lib/systemd/system/monolock.service", "lib/systemd/system/monolock.socket",
        "lib/systemd/system/monolock-ops.socket", "lib/systemd/system/monolock-admin.socket",
        "lib/sysusers.d/monolock.conf", "share/man/man8/monolock.8", "share/man/man5/monolock-acl.5",
        "share/man/man7/monolock-protocol.7", "share/bash-completion/completions/monolock",
        "share/zsh/site-functions/_monolock", "share/fish/vendor_completions.d/monolock.fish",
        "share/doc/monolock/README.md", "share/doc/monolock/LICENSE"},
    "ctl": {
        "bin/monolockctl", "share/man/man1/monolockctl.1", "share/bash-completion/completions/monolockctl",
        "share/zsh/site-functions/_monolockctl", "share/fish/vendor_completions.d/monolockctl.fish"},
    "client": {
        "include/monolock/monolock.hpp", "LIBDIR/libmonolock.so", "LIBDIR/libmonolock.so.1", "LIBDIR/libmonolock.a",
        "LIBDIR/cmake/monolock/monolock-config.cmake", "LIBDIR/pkgconfig/monolock.pc"},
}


def installed(where, *flags):
    subprocess.run(["cmake", "--install", os.environ["BUILD_DIR"], "--prefix", where, *flags], check=True, stdout=subprocess.DEVNULL)
    return {str(path.relative_to(where)) for path in where.rglob("*") if not path.is_dir()}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return {name: installed(tmp_path_factory.mktemp(name) / "prefix", "--component", name) for name in EXPECTED}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_a_component_has_its_files(parts, name):
    expected = {file.replace("LIBDIR", os.environ["LIBDIR"]) for file in EXPECTED[name]}
    assert expected - parts[name] == set()


def test_components_are_all_there_is_and_share_nothing(parts, tmp_path):
    assert sum(len(files) for files in parts.values()) == len(set().union(*parts.values()))
    assert set().union(*parts.values()) == installed(tmp_path / "prefix", "--strip")


def test_links_of_installed_documents_lead_to_installed_ones(tmp_path):
    """But for those to the sources: tests, examples, deploy and the like."""
    installed(tmp_path)
    documents = tmp_path / "share/doc/monolock"
    dead = []
    for page in documents.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:\s]+\.(?:md|yaml))(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            leads_to = os.path.relpath(page.parent / target, documents)
            if (leads_to.startswith("docs/") or "/" not in leads_to) and not (documents / leads_to).exists():
                dead.append(f"{page.relative_to(documents)}: {target}")
    assert not dead
