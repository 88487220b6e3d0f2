"""Processes that do their part until they are told to end, and say what they saw when they are asked."""

import contextlib
import multiprocessing
import signal
import traceback

ANSWER_SECONDS = 60


class Broken(Exception):
    """The soak cannot go on."""


class Helper:
    """A process around an object of that kind. The object has turn(), called again and again and short; report(),
    what it saw since it was asked last; and drain(), which ends all it began and returns True when that is done."""

    def __init__(self, name, make, *arguments):
        self.name = name
        self._ours, theirs = multiprocessing.Pipe()
        # Forked: it shares what its parent has open. No thread of the parent's may be there.
        self._process = multiprocessing.get_context("fork").Process(
            target=_live, args=(theirs, self._ours, make, arguments), name=name
        )
        self._process.start()
        theirs.close()

    def ask(self, word="report"):
        with contextlib.suppress(BrokenPipeError):  # it has failed, and its last words wait to be read
            self._ours.send(word)
        if not self._ours.poll(ANSWER_SECONDS):
            raise Broken(f"{self.name} does not answer")
        try:
            how, what = self._ours.recv()
        except (EOFError, ConnectionResetError):
            raise Broken(f"{self.name} ended by itself") from None
        if how == "failed":
            raise Broken(f"{self.name}: {what}")
        return what

    def end(self):
        """Its last report, once it has ended all that it began."""
        last = self.ask("end")
        self._process.join()
        return last

    def dispose(self):
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _live(pipe, parents, make, arguments):
    parents.close()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # a terminal's are for the soak, which asks once more and then ends this
    try:
        actor = make(*arguments)
        ending = False
        while not (ending and actor.drain()):
            actor.turn()
            if pipe.poll(0):
                ending = pipe.recv() == "end"
                if not ending:
                    pipe.send(("report", actor.report()))
        pipe.send(("report", actor.report()))
    except EOFError:  # the soak is over
        pass
    except BaseException:
        pipe.send(("failed", traceback.format_exc()))
