"""The tool itself: what it plants, that a sleeping mutant changes nothing, and that the figures tell the truth."""

import pathlib
import subprocess

import building
import equivalents
import operators
import pytest
import report
import schemata
import syntax
import trials
from support import explained

HERE = pathlib.Path(__file__).resolve().parent


def mutants_of(folder, text):
    (folder / "sample.cpp").write_text(text, encoding="latin-1")
    finder = operators.Finder({"sample.cpp": text})
    finder.search(syntax.parse(syntax.dump(folder, "sample.cpp", ["-std=c++20"])))
    return finder.mutants()


def changes(folder, body):
    found = mutants_of(folder, f"namespace monolock {{\n{body}\n}}\n")
    return {(each.operator, *each.change()) for each in found}


PLANTED = [
    ("bool f(int a) { return a < 3; }", {
        ("relational", "a < 3", "a <= 3"), ("relational", "a < 3", "a >= 3"),
        ("number", "3", "3 + 1"), ("number", "3", "3 - 1")}),
    ("bool f(bool a, bool b) { return a && !b; }", {
        ("logical", "a && !b", "(a) || (!b)"), ("operand", "a && !b", "a"), ("operand", "a && !b", "!b"),
        ("condition", "a", "!(a)"), ("negation", "!b", "static_cast<bool>(b)")}),
    ("void g(); void f(bool a) { if (a) { g(); return; } g(); }", {
        ("condition", "a", "!(a)"), ("statement removed", "g();", ";"), ("return removed", "return;", ";")}),
    ("int f(int a, int b) { a += b; return a * b; }", {
        ("statement removed", "a += b;", ";"), ("arithmetic", "a += b", "a -= b"),
        ("arithmetic", "a * b", "a / b"), ("returned value", "return a * b;", "return {};")}),
    ("enum class e { x, y, z }; e f() { return e::z; }", {
        ("enumerator", "e::z", "e::x"), ("returned value", "return e::z;", "return {};")}),
    ("int* f(int* a) { return a; }", {("returned value", "return a;", "return nullptr;")}),
    ("int f(int a) { for (int i = 0; i != a; ++i) { } return 0; }", {
        ("relational", "i != a", "i == a"), ("step", "++i", "--i"), ("number", "0", "0 + 1"),
        ("returned value", "return 0;", "return {};")}),
    ("constexpr int most = 7;", {("number", "7", "7 + 1"), ("number", "7", "7 - 1")}),
    ("int* g(); bool f() { if (int* a = g()) { return a == g(); } return false; }", {
        ("condition", "int* a = g()", "int* a = g(); !a"), ("return removed", "return a == g();", ";"),
        ("relational", "a == g()", "a != g()"), ("truth", "false", "true")}),
    ("enum class e { x, y }; void g(); void f(e a) { switch (a) { case e::x: g(); break; case e::y: break; } }", {
        ("label swapped", "a", "e::x <-> e::y"), ("statement removed", "g();", ";"),
        ("break removed", "break;", ";")}),
]


@pytest.mark.parametrize("body, expected", PLANTED, ids=[body[:40] for body, _ in PLANTED])
def test_it_plants_what_a_person_gets_wrong(tmp_path, body, expected):
    assert changes(tmp_path, body) == expected


def test_assertions_comments_and_what_must_hold_to_compile_are_left_alone(tmp_path):
    assert changes(tmp_path, """
        // a < b, and 17
        #define ASSERT(condition) ((condition) ? void(0) : __builtin_trap())
        static_assert(1 < 2);
        void f(int a) { ASSERT(a < 3 && a != 1); }
    """) == set()


SAMPLE = """#include <cstdio>
#include <cstdlib>
namespace monolock {
enum class colour { red, green, blue };
constexpr int weight(colour which) {
    switch (which) {
        case colour::red:
            return 1;
        case colour::green:
            return 20;
        case colour::blue:
            break;
    }
    return 300;  // ×
}
int judge(int a, int b) {
    int sum = 0;
    for (int i = 0; i < a && sum < 100; ++i) {
        if (i == b || (i > 4 && !(b > 2))) {
            sum += 1000;
            continue;
        }
        sum = sum + i * 2;
    }
    if (const char* const set = std::getenv("NOT_SET_ANYWHERE")) {
        sum -= set[0];
    }
    return sum;
}
}  // namespace monolock
int main() {
    for (int a = 0; a < 8; ++a) {
        for (int b = 0; b < 5; ++b) {
            std::printf("%d ", monolock::judge(a, b));
        }
    }
    for (int which = 0; which < 3; ++which) {
        std::printf("%d ", monolock::weight(static_cast<monolock::colour>(which)));
    }
}
"""


def compiled(folder, name, text, *flags):
    source, program = folder / f"{name}.cpp", folder / name
    source.write_text(text, encoding="latin-1")
    subprocess.run(["clang++-14", "-std=c++20", "-w", *flags, source, "-o", program], check=True)
    return program


def said(program, mutant=0):
    try:
        ran = subprocess.run([program], env={"MUTANT": str(mutant)}, capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:
        return "never ends"
    return ran.stdout if ran.returncode == 0 else "dies"


def test_a_mutant_that_is_awake_does_what_its_text_says_and_all_others_sleep(tmp_path):
    text = SAMPLE.encode().decode("latin-1")  # a byte is a character
    found = mutants_of(tmp_path, text)
    all_of_them = compiled(tmp_path, "all", schemata.Schemata(text, found).text(), "-include", HERE / "mutant.hpp")
    as_written = said(compiled(tmp_path, "none", text))
    assert said(all_of_them) == as_written
    assert len(found) > 40
    changed = 0
    for mutant in found[::4]:
        alone = said(compiled(tmp_path, "one", schemata.plain(text, mutant)))
        assert said(all_of_them, mutant.id) == alone, mutant
        changed += alone != as_written
    assert changed > 8


def test_what_a_test_comes_by_is_told_even_by_a_child_that_dies(tmp_path):
    text = "namespace monolock { int f(int a) { return a + 1; } int g(int a) { return a - 1; } }\n"
    found = mutants_of(tmp_path, text)
    main = "#include <cstdlib>\n#include <sys/wait.h>\n#include <unistd.h>\n" + schemata.Schemata(text, found).text() + (
        "int main() { if (::fork() == 0) { monolock::g(1); std::abort(); } ::wait(nullptr); }\n")
    program = compiled(tmp_path, "dies", main, "-include", HERE / "mutant.hpp")
    subprocess.run([program], env={"MUTANT_REACHED": str(tmp_path / "reached")}, check=True)
    told = {number for number, asked in enumerate((tmp_path / "reached").read_bytes()) if asked}
    assert told == {each.id for each in found if each.begin > text.index("g(int")}


def test_a_mutant_that_does_not_compile_is_blamed_and_no_other(tmp_path):
    text = "namespace monolock { struct s { int* a; }; int f(int* a, int* b) { return *(a + 1) + int(b - a); } }\n"
    found = mutants_of(tmp_path, text)
    written = schemata.Schemata(text, found)
    (tmp_path / "sample.cpp").write_text(written.text())
    ran = subprocess.run(["clang++-14", "-std=c++20", "-w", "-ferror-limit=0", "-fsyntax-only", "-include",
                          HERE / "mutant.hpp", tmp_path / "sample.cpp"], capture_output=True, text=True)
    assert ran.returncode != 0
    blamed = building.blame(ran.stderr, {"sample.cpp": written})
    assert {each.change() for each in found if each.id in blamed} == {("b - a", "b + a")}


def result(verdict, by="", **more):
    return {"file": "a.cpp", "folder": "core", "line": 1, "operator": "number", "was": "0", "now": "1",
            "verdict": verdict, "by": by, "reached": True, "key": ["a.cpp", "x = 0;", "0", "1"], **more}


def test_the_score_counts_neither_what_does_not_compile_nor_what_changes_nothing():
    results = [result("killed", report.UNIT)] * 8 + [result("killed", report.TIME), result("survived"), result(
        "survived", reason="why"), result("same code"), result("does not compile")]
    figures = report.Figures(results)
    assert (figures.counted, figures.killed, figures.unexplained, figures.explained) == (11, 9, 1, 1)
    assert figures.score() == pytest.approx(90.0)
    assert figures.plain() == pytest.approx(100 * 9 / 11)
    assert report.below_the_bar(results) == ["core: 90.0 %"]


LIST = """# a comment
a.cpp
  in:  x = 0;
  was: 0
  now: 1
  why: nobody reads x,
       and nobody will
"""


def test_a_reason_goes_stale_when_the_mutant_is_killed_or_gone(tmp_path):
    path = tmp_path / "equivalent.txt"
    path.write_text(LIST)
    entries = equivalents.read(path)
    survived, killed = result("survived"), result("killed", report.UNIT)
    assert equivalents.explain(entries, [survived], ["a.cpp"]) == []
    assert survived["reason"] == "nobody reads x, and nobody will"
    assert "killed" in equivalents.explain(entries, [killed], ["a.cpp"])[0]
    assert "no such mutant" in equivalents.explain(entries, [], ["a.cpp"])[0]
    assert equivalents.explain(entries, [], ["b.cpp"]) == []  # not looked at
    path.write_text(LIST.replace("  now: 1\n", ""))
    with pytest.raises(ValueError, match="without now"):
        equivalents.read(path)


def test_a_line_is_quoted_with_what_tells_it_from_others():
    lines = ["case a:", "    f();", "    return;", "case b:", "    f();", "    return;", "f(1);"]
    assert explained.quotation(lines, 7) == "f(1);"
    assert explained.quotation(lines, 6) == "case b: f(); return;"
    assert explained.quotation(lines, 1) == "case a:"


def test_own_tests_come_first_and_the_simulator_last():
    order = trials.in_order(trials.suites(300), "core")
    assert [each.of for each in order[:4]] == ["core"] * 4
    assert all(each.of == "" for each in order[-2:])
    assert len(order) == len(trials.suites(300))
