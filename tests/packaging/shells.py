"""Asks real shells what they would complete a command line to.

Each shell has loaded the scripts under test, is in a folder of the test's choice, and answers with the set of
words that it would put in place of the last one. What is asked is typed, cursor at its end.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import time

WITHIN = 30.0


class Terminal:
    """An interactive program on a terminal of its own."""

    def __init__(self, words, cwd, env):
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            os.execvpe(words[0], words, env)
        self.seen = ""

    def send(self, text):
        os.write(self._fd, text.encode())

    def wait_for(self, pattern):
        """What the pattern finds, in what has come since the last such call."""
        until = time.monotonic() + WITHIN
        while True:
            found = re.search(pattern, self.seen, re.S)
            if found:
                self.seen = self.seen[found.end():]
                return found
            left = until - time.monotonic()
            assert left > 0 and select.select([self._fd], [], [], left)[0], f"no {pattern!r} in {self.seen!r}"
            self.seen += os.read(self._fd, 65536).decode(errors="replace")

    def end(self):
        os.close(self._fd)
        os.waitpid(self._pid, 0)


def plain_environment(**more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL") if name in os.environ}
    return kept | {"TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "20000", "LINES": "50"} | more


class LineShell:
    """One with a line editor that inserts all possible words, and then shows the line between « and »."""

    def __init__(self, words, cwd, setup, env):
        self._terminal = Terminal(words, cwd, plain_environment(**env))
        self._terminal.send(setup + "\n")
        self._terminal.send("printf '%s%s\\n' READ Y\n")
        self._terminal.wait_for("READY")

    def complete(self, line):
        """The line with its last word replaced by all that it may be."""
        self._terminal.send(line + "\x18a\x18p")
        shown = self._terminal.wait_for("«(.*?)»")[1]
        self._terminal.send("\x15")
        return shown

    def words(self, line):
        stem = re.split(r"[ =:]", line)[-1]
        kept = line[:len(line) - len(stem)]
        shown = self.complete(line)
        assert shown.startswith(kept), shown
        # zsh puts the sign of a value behind its flag, and the flag before each value.
        flag = kept.split(" ")[-1]
        found = {word.removeprefix(flag).removesuffix("=") for word in shown[len(kept):].split()}
        # Nothing was found: the line is as it was typed.
        return set() if found == {stem} and shown == line else found

    def end(self):
        self._terminal.end()


def bash(scripts, cwd, path):
    setup = "; ".join([
        "stty -echo", "PS1= PS2=", "source /usr/share/bash-completion/bash_completion",
        *(f"source '{script}'" for script in sorted((scripts / "bash").iterdir())),
        r"bind '\"\C-xa\": insert-completions' 2>/dev/null".replace('\\"', '"'),
        r"show() { printf '«%s»\n' \"$READLINE_LINE\"; }".replace('\\"', '"'),
        r"""bind -x '"\C-xp": show'""", "bind 'set bell-style none'"])
    return LineShell(["bash", "--norc", "--noprofile", "-i"], cwd, setup, {"PATH": path})


def zsh(scripts, cwd, path):
    setup = "; ".join([
        "stty -echo", "PS1= PS2= RPS1=", "unsetopt zle_bracketed_paste 2>/dev/null", "zle_bracketed_paste=()",
        f"fpath=('{scripts}/zsh' $fpath)", "autoload -Uz compinit", "compinit -u -D",
        "zle -C all complete-word _generic", "bindkey '^Xa' all",
        "zstyle ':completion:all:*' completer _all_matches _complete", "zstyle ':completion:all:*' insert yes",
        "show() { print -r -- \"«$BUFFER»\" }", "zle -N show", "bindkey '^Xp' show", "bindkey '^U' kill-whole-line"])
    return LineShell(["zsh", "-f", "-i"], cwd, setup, {"PATH": path})


class Fish:
    """Says itself what it would offer."""

    def __init__(self, scripts, cwd, path):
        self._cwd = cwd
        self._env = plain_environment(PATH=path, XDG_CONFIG_HOME="/nonexistent", XDG_DATA_HOME="/nonexistent")
        self._setup = "; ".join(f"source '{script}'" for script in sorted((scripts / "fish").iterdir()))

    def words(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", f"{self._setup}; complete -C \"$argv[1]\"", line],
                              cwd=self._cwd, env=self._env, capture_output=True, text=True, timeout=WITHIN, check=True)
        assert done.stderr == "", done.stderr
        words = [row.split("\t")[0] for row in done.stdout.splitlines()]
        # Of "--flag=word" the whole word is given; the others give what stands behind the sign.
        return {word.split("=", 1)[-1] if "=" in line.split()[-1] else word for word in words}

    def end(self):
        pass


SHELLS = {"bash": bash, "zsh": zsh, "fish": Fish}


def there_is(shell):
    return shutil.which(shell) and (shell != "bash" or os.path.exists("/usr/share/bash-completion/bash_completion"))
