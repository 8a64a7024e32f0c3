"""What fake_e2b.py does wrong in a stream of a process when it is told to."""
import base64, struct, time

from fake_machine import never


class Cut(Exception):
    """The connection ends here, in the middle of whatever."""


def event(text):
    return {"event": {"data": {"stdout": base64.b64encode(text).decode()}}}


def stream_fault(handler, wrong, process=None):
    if wrong.isdigit():
        handler.reply(int(wrong), raw=b"a proxy's page, not ours", kind="text/html")
        raise Cut()
    if wrong == "html":
        handler.reply(200, raw=b"<html>a portal</html>", kind="text/html")
        raise Cut()
    if wrong == "silent":  # not even headers
        never()
    if wrong == "nostart":
        handler.frame(0, event(b"too early"))
        raise Cut()
    handler.frame(0, {"event": {"start": {"pid": process.pid}}})
    if wrong == "stall":
        handler.frame(0, event(b"before\n"))
        never()
    if wrong == "cut":
        handler.frame(0, event(b"before\n"))
        raise Cut()
    if wrong == "cut_in_frame":
        handler.frame(0, event(b"before\n"))
        handler.chunk(struct.pack(">BI", 0, 100) + b'{"event"')
        raise Cut()
    if wrong == "flag":
        handler.chunk(struct.pack(">BI", 1, 2) + b"{}")
    if wrong == "huge":
        handler.chunk(struct.pack(">BI", 0, 0xFFFFFFF0))
    if wrong == "not_json":
        handler.chunk(struct.pack(">BI", 0, 4) + b"\xff{x}")
    if wrong == "not_base64":
        handler.frame(0, {"event": {"data": {"stdout": "***"}}})
    if wrong == "wrong_types":
        handler.frame(0, {"event": [{"end": "yes"}]})
    if wrong == "exit_256":
        handler.frame(0, {"event": {"end": {"exited": True, "exitCode": 256, "status": "exit status 256"}}})
        handler.end_stream()
    if wrong == "later":  # of a version to come
        handler.frame(0, {})
        handler.frame(0, {"event": {"moved": {"to": 7}}})
        handler.frame(0, {"event": {"end": {"exited": True, "exitCode": 3, "status": "exit status 3"}}})
        handler.end_stream()
    if wrong == "deadline":
        handler.end_stream({"code": "deadline_exceeded", "message": "the operation timed out"})
    if wrong == "no_end_event":
        handler.end_stream()
    if wrong == "no_end_frame":
        handler.frame(0, {"event": {"end": {"exited": True, "status": "exit status 0"}}})
        raise Cut()
    if wrong == "error":
        handler.end_stream({"code": "internal", "message": "\x1b[31mboom\nsecond line"})
    if wrong == "usage":  # a grep that knows no such option
        handler.frame(0, {"event": {"data": {"stderr": base64.b64encode(b"unknown option\n").decode()}}})
        handler.frame(0, {"event": {"end": {"exited": True, "exitCode": 2, "status": "exit status 2", "error": "exit status 2"}}})
        handler.end_stream()
    if wrong == "slow":  # one byte at a time
        data = b'{"event":{"data":{"stdout":"c2xvdw=="}}}'
        for byte in struct.pack(">BI", 0, len(data)) + data:
            handler.chunk(bytes([byte]))
            time.sleep(0.002)  # so that they come one by one; those that do not are as good
        handler.frame(0, {"event": {"end": {"exited": True, "status": "exit status 0"}}})
        handler.end_stream()
    raise Cut()
