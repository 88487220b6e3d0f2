"""cmake/monolock_embed.cmake: files as a part of a program, byte for byte, and again when they change."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "cmake" / "embed_files.cmake"
EVERY_BYTE = bytes(range(256))

PROGRAM = """
#include <iostream>
#include <span>
#include "web/embedded_file.hpp"
namespace some::where { std::span<const monolock::web::embedded_file> files() noexcept; }
int main() {
    for (const auto& each : some::where::files()) {
        std::cout << each.name << '\\n' << each.bytes.size() << '\\n' << each.bytes << '\\n';
    }
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(embeds LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
include({root}/cmake/monolock_embed.cmake)
add_executable(show show.cpp)
target_include_directories(show PRIVATE {root}/src)
monolock_embed(show NAMESPACE some::where FUNCTION files FILES every.bin empty.txt folder/text.txt)
"""


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, timeout=120).stdout


def embed(folder, output):
    run("cmake", "-D", f"OUTPUT={output}", "-D", "NAMESPACE=a", "-D", "FUNCTION=f",
        "-D", f"FILES=every={folder / 'every.bin'};empty={folder / 'empty.txt'}", "-P", SCRIPT, cwd=folder)
    return (folder / output).read_bytes()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "every.bin").write_bytes(EVERY_BYTE)
    (tmp_path / "empty.txt").write_bytes(b"")
    return tmp_path


def test_the_same_files_give_the_same_source(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for file in folder.iterdir():
        shutil.copy(file, elsewhere)
    assert embed(folder, "first.cpp") == embed(elsewhere, "second.cpp")


def test_they_are_in_the_program_and_follow_the_files(folder):
    (folder / "folder").mkdir()
    (folder / "folder" / "text.txt").write_text("ü\n\"\\??/;$[]\n")
    (folder / "show.cpp").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
    run("cmake", "-G", "Ninja", "-B", "build", cwd=folder)

    def shown():
        run("cmake", "--build", "build", cwd=folder)
        return run(folder / "build" / "show", cwd=folder)

    def expected(every):
        text = (folder / "folder" / "text.txt").read_bytes()
        return b"".join(b"%s\n%d\n%s\n" % (name, len(data), data)
                        for name, data in ((b"every.bin", every), (b"empty.txt", b""), (b"folder/text.txt", text)))

    assert shown() == expected(EVERY_BYTE)
    (folder / "every.bin").write_bytes(b"changed")
    assert shown() == expected(b"changed")
    assert b"no work to do" in run("cmake", "--build", "build", cwd=folder)
