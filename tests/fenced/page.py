"""The programs of docs/fencing.md, as they stand there and changed where a test needs it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/fencing.md"


def block(language, having, page=PAGE):
    """The one block in that language that has the text."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)
    (found,) = [text for text in blocks if having in text]
    return found


def changed(text, *pairs):
    """Each first text by its second, which must be there."""
    for old, new in pairs:
        assert old in text, f"{PAGE} does not have: {old}"
        text = text.replace(old, new)
    return text


def schema():
    return block("sql", "CREATE TABLE report") + block("sql", "CREATE TABLE fence")


def add_script():
    return block("sh", "# add LINE")


def put_script():
    return block("sh", "# put FILE")


# The script says that it has read, thinks until the test lets it go on, and says it when it is refused (a psql that
# an error stopped ends with 3).
THINKS = [
    ("set -eu\n", "set -eu\ntrap '[ $? != 3 ] || echo \"not added $2\"' EXIT\n"),
    ('after="$before $2"', 'echo "read $2 $MONOLOCK_TOKEN"; read -r go; after="$before $2"'),
]
WITHOUT_CONDITIONS = [(" AND token <= :token", ""), (" AND token = :token", "")]


def write_scripts(folder):
    """The paths of the page's script as it stands, of one that thinks, and of one that does and is not fenced."""
    thinking = changed(add_script(), *THINKS)
    texts = {"add": add_script(), "fenced": thinking, "unfenced": changed(thinking, *WITHOUT_CONDITIONS)}
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.sh"
        paths[name].write_text(text)
        paths[name].chmod(0o755)
    return paths
