"""What the fakes of clouds have in common: a machine that can be switched off, and answers that never come."""
import os, signal, threading, time


def never():
    """Nothing comes any more: whoever asked gives up, by its own clock, and this thread ends with the fake."""
    threading.Event().wait()


def parent_and_state(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        rest = file.read().rpartition(b")")[2].split()
    return int(rest[1]), rest[0]


def is_changing(pid):
    """One of ours (or of the test that started us, which adopts orphans) in the midst of execve(2) or of its end: without memory."""
    up, state = parent_and_state(pid)
    with open(f"/proc/{pid}/stat", "rb") as file:
        end_of_environment = int(file.read().rpartition(b")")[2].split()[48])  # env_end of proc(5); of an empty one it is not 0
    if state in b"ZX" or end_of_environment != 0:
        return False
    while up > 1 and up != os.getppid():
        up = parent_and_state(up)[0]
    return up > 1


class Machine:
    """All processes that carry `mark` in their environment."""

    def __init__(self, mark):
        self.mark, self.is_on, self.lock = mark.encode() + b"\0", True, threading.Lock()

    def start(self, begin):
        """What `begin`, which returns when its process has executed its program, returns. None: it is switched off."""
        with self.lock:  # or the process would begin when all were ended
            return begin() if self.is_on else None

    def switch_off(self):
        with self.lock:
            self.is_on = False
        limit = time.monotonic() + 60
        while self.end_all() and time.monotonic() < limit:
            time.sleep(0.005)  # between two looks: they end in their own time

    def end_all(self):
        """True: there were some."""
        found = False
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    environment = file.read()
                if self.mark in environment:
                    os.kill(int(entry), signal.SIGKILL)
                    found = True
                elif not environment and is_changing(entry):
                    found = True
            except OSError:
                pass
        return found
