"""Runs a line of shell text on a terminal of its own until it shows something, and answers: on_terminal.py UNTIL ANSWER LINE.

UNTIL and ANSWER may hold escapes (`\\x1b[`). With an answer the line's end is waited for; without one the terminal is hung up. Prints
what was shown. Exit code: the line's own, or 0 for who was hung up; 1: it ended without showing that.
"""
import os
import pty
import sys

until, answer, line = (text.encode().decode('unicode_escape').encode('latin1') for text in sys.argv[1:4])
pid, terminal = pty.fork()
if pid == 0:
    os.execv('/bin/sh', ['sh', '-c', line.decode('latin1')])
shown, answered = b'', False
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:  # EIO: nobody has it open any more
        more = b''
    if not more:
        break
    shown += more
    if until in shown and not answered:
        answered = True
        if not answer:
            break
        os.write(terminal, answer)
os.close(terminal)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(shown)
sys.exit(1 if not answered else status if answer else 0)
