"""The list of mutants that change nothing that anybody promised, each with its reason (equivalent.txt).

An entry names the file, the line as it stands, and the change; it goes stale as soon as one of them is no longer so,
or as soon as a test kills the mutant.
"""

from support import explained

FIELDS = ("in", "was", "now", "why")


def read(path):
    return explained.read(path, FIELDS)


def key_of(mutant):
    return (mutant.file, mutant.line_text, *mutant.change())


def explain(entries, results, files):
    """Writes the reasons into the results. Returns what is stale: entries that fit no mutant that survived, of the
    files that were looked at."""
    stale = []
    for entry in entries:
        if entry.file not in files:
            continue
        key = [entry.file, entry["in"], entry["was"], entry["now"]]
        fitting = [each for each in results if each["key"] == key]
        survivors = [each for each in fitting if each["verdict"] == "survived"]
        for each in survivors:
            each["reason"] = entry["why"]
        if not survivors:
            how = ", ".join(f"{each['verdict']} {each['by']}".strip() for each in fitting)
            stale.append(f"line {entry.number}: {entry.file}: {entry['was']}  ->  {entry['now']}: "
                         + (how or "there is no such mutant any more"))
    return stale
