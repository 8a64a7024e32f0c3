#!/usr/bin/env python3
"""A small E2B for tests: control plane and envd on one port, as the public SDK speaks to them. It isolates nothing: commands run
as whoever started it. The npm package `e2b` drives it in tests/remote/e2e/e2b_test.cc, so that what is tested against it is tested
against what others expect, too.

    fake_e2b.py DIRECTORY        homes of sandboxes are made there; prints its port, ends when its stdin does

Every line of DIRECTORY/faults is something that it does wrong, WHERE=WHAT; see `fault`. Every request is told in DIRECTORY/log.
`/home/user` in a path means the sandbox's home.
"""
import base64, fcntl, hashlib, json, os, queue, re, resource, secrets, select, shutil, signal, socket, stat, struct, subprocess, sys, termios
import threading, time, urllib.parse
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fake_e2b_faults import Cut, stream_fault
from fake_machine import Machine, never

ROOT = os.path.realpath(sys.argv[1])
KEY = "e2b_" + "0123456789" * 4
STATUS = {"canceled": 499, "invalid_argument": 400, "deadline_exceeded": 504, "not_found": 404, "already_exists": 409,
          "permission_denied": 403, "resource_exhausted": 429, "unimplemented": 501, "unavailable": 503, "unauthenticated": 401,
          "failed_precondition": 400, "internal": 500}
SIGNALS = {1: "hangup", 2: "interrupt", 3: "quit", 6: "aborted", 9: "killed", 11: "segmentation fault", 13: "broken pipe",
           15: "terminated"}
log_lock = threading.Lock()


def fault(where):
    """What is to go wrong at `where`; `WHAT*N` goes wrong N times."""
    try:
        with log_lock, open(ROOT + "/faults", "r+") as file:
            lines = file.read().split()
            for i, line in enumerate(lines):
                place, _, what = line.partition("=")
                if place != where:
                    continue
                what, _, times = what.partition("*")
                if times:
                    left = int(times) - 1
                    lines[i] = f"{place}={what}*{left}" if left else ""
                    file.seek(0)
                    file.truncate()
                    file.write("\n".join(lines))
                return what
    except FileNotFoundError:
        pass
    return ""


class Refused(Exception):
    def __init__(self, code, message):
        self.code, self.message = code, message


def rfc3339(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e9):09d}Z"


class Process:
    def __init__(self, box, request, user_stdin):
        config = request["process"]
        self.config, self.tag, self.box = config, request.get("tag"), box
        self.lock, self.subscribers, self.end, self.killed = threading.Lock(), [], None, threading.Event()
        self.master = None
        argv = [config["cmd"], *config.get("args", [])]
        cwd = box.path(config.get("cwd", "") or box.home)
        if not os.path.isdir(cwd):
            raise Refused("invalid_argument", f"cwd '{config.get('cwd')}' does not exist")
        # OLDPWD and PWD are the shell's own business.
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": box.home, "USER": "user", "LOGNAME": "user", **box.envs,
               "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": box.id, "E2B_TEMPLATE_ID": box.template, **config.get("envs", {})}
        size = request.get("pty", {}).get("size")
        how = {"cwd": cwd, "env": env, "start_new_session": True}
        try:
            if size:
                self.master, slave = os.openpty()
                self.resize(size)

                def take_terminal():
                    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

                self.popen = box.machine.start(
                    lambda: subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal, **how))
                os.close(slave)
                outputs = [("pty", self.master, 16384)]
            else:
                stdin = subprocess.PIPE if user_stdin else subprocess.DEVNULL
                self.popen = box.machine.start(
                    lambda: subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **how))
                outputs = [("stdout", self.popen.stdout.fileno(), 32768), ("stderr", self.popen.stderr.fileno(), 32768)] if self.popen else []
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise Refused("invalid_argument", f"error starting process '{argv[0]}': {self.reason(error)}")
        if self.popen is None:
            raise Refused("unavailable", "the sandbox was ended meanwhile")
        self.pid = self.popen.pid
        self.over, self.wake = os.pipe()  # its readers see the end of this one where they need not wait for the end of their own
        self.input_lock = threading.Lock()
        self.outputs = outputs

    def begin(self):
        self.readers = [threading.Thread(target=self.read, args=output, daemon=True) for output in self.outputs]
        for reader in self.readers:
            reader.start()
        threading.Thread(target=self.follow, daemon=True).start()

    @staticmethod
    def reason(error):
        if isinstance(error, FileNotFoundError):
            return "executable file not found in $PATH"
        return os.strerror(error.errno).lower() if getattr(error, "errno", None) else str(error)

    def tell(self, event):
        with self.lock:
            listeners = list(self.subscribers)
        for listener in listeners:
            while not listener.gone:
                try:
                    listener.put(event, timeout=0.5)
                    break
                except queue.Full:
                    pass

    def read(self, name, fd, size):
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self.over, select.POLLIN)
        rest = 65536  # what a pipe holds: who goes on writing after a kill is not read for ever
        while rest > 0:
            ready = [each for each, _ in poll.poll()]
            if fd not in ready:
                return
            try:
                data = os.read(fd, size)
            except OSError:
                data = b""
            if not data:
                return
            rest -= len(data) if self.over in ready else 0
            self.tell({"data": {name: base64.b64encode(data).decode()}})

    def follow(self):
        code = self.popen.wait()
        # The end comes when nobody holds the output any more, or after a signal through the API.
        while any(reader.is_alive() for reader in self.readers) and not self.killed.is_set():
            self.readers[0].join(0.02)
            self.readers[-1].join(0.02)
        os.close(self.wake)
        for reader in self.readers:  # what was said until now comes before the end
            reader.join()
        os.close(self.over)
        if code < 0:
            status = "signal: " + SIGNALS.get(-code, f"signal {-code}")
            end = {"exitCode": -1, "status": status, "error": status}
        else:
            end = {"exited": True, "status": f"exit status {code}"}
            if code:
                end.update(exitCode=code, error=end["status"])
        with self.lock:
            self.end = {"end": end}
        self.tell(self.end)
        time.sleep(30)  # as the service does it: who asks after it meanwhile is told; no test waits for this
        self.box.processes.pop(self.pid, None)

    def subscribe(self):
        listener = queue.Queue(256)
        listener.gone = False
        with self.lock:
            listener.put({"start": {"pid": self.pid}})
            if self.end:
                listener.put(self.end)
            else:
                self.subscribers.append(listener)
        return listener

    def resize(self, size):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", size.get("rows", 24), size.get("cols", 80), 0, 0))

    def write(self, data):
        if self.popen.stdin is None or self.popen.stdin.closed:
            raise Refused("internal", "stdin not enabled or closed")
        try:
            with self.input_lock:
                while data:
                    data = data[self.popen.stdin.write(data):]
        except (OSError, ValueError) as error:
            raise Refused("internal", f"error writing to stdin: {error}")

    def signal(self, number):
        if self.end:
            raise Refused("not_found", f"process with pid {self.pid} not found")
        self.killed.set()
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass


class Box:
    def __init__(self, request):
        self.id = "i" + secrets.token_hex(10)
        self.template = request["templateID"]
        self.token = secrets.token_urlsafe(24)
        self.envs = request.get("envVars") or {}
        self.metadata = request.get("metadata") or {}
        self.request, self.state, self.started = request, "running", time.time()
        self.end = self.started + request.get("timeout", 300)
        self.home = f"{ROOT}/{self.id}"
        os.mkdir(self.home)
        self.processes, self.streams, self.lock = {}, set(), threading.Lock()
        self.machine = Machine("E2B_SANDBOX_ID=" + self.id)

    def path(self, path):
        if path == "/home/user" or path.startswith("/home/user/"):
            path = self.home + path[len("/home/user"):]
        if path.startswith("~"):
            path = self.home + path[1:]
        return os.path.normpath(os.path.join(self.home, path))

    def answer(self):
        return {"sandboxID": self.id, "templateID": self.template, "clientID": "fake", "envdVersion": fault("version") or "0.6.13",
                "envdAccessToken": self.token, "domain": None}

    def info(self):
        return {"sandboxID": self.id, "templateID": self.template, "clientID": "fake", "state": self.state, "cpuCount": 2,
                "memoryMB": 512, "diskSizeMB": 1024, "envdVersion": "0.6.13", "metadata": self.metadata,
                "startedAt": rfc3339(self.started), "endAt": rfc3339(self.end)}

    def cut_streams(self):
        with self.lock:
            streams = list(self.streams)
        for stream in streams:
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def kill(self):
        self.state = "killed"
        self.cut_streams()
        self.machine.switch_off()
        shutil.rmtree(self.home, ignore_errors=True)


boxes, boxes_lock = {}, threading.Lock()


def find_box(box_id, need_running=True):
    box = boxes.get(box_id)
    if box and box.state == "running" and time.time() >= box.end:
        box.kill()
    if box is None or box.state == "killed" or (need_running and box.state != "running"):
        return None
    return box


def entry_of(path):
    info = os.lstat(path)
    link = stat.S_ISLNK(info.st_mode)
    try:
        target = os.stat(path) if link else info
    except OSError:
        target = None
    kind = target and ("FILE_TYPE_FILE" if stat.S_ISREG(target.st_mode) else
                       "FILE_TYPE_DIRECTORY" if stat.S_ISDIR(target.st_mode) else None)
    entry = {"name": os.path.basename(path), "path": path, "owner": "user", "group": "user", "modifiedTime": rfc3339(info.st_mtime),
             "permissions": ("L" if link else "") + stat.filemode((target or info).st_mode)[0 if not link else 1:],
             "mode": stat.S_IMODE((target or info).st_mode) & 0o777}
    if kind:
        entry["type"] = kind
    if info.st_size:
        entry["size"] = str(info.st_size)
    if link:
        entry["symlinkTarget"] = os.path.realpath(path)
    return entry


def files_call(box, method, request):
    path = box.path(request.get("path", ""))
    if method == "Stat":
        return {"entry": entry_of(path)}
    if method == "MakeDir":
        if fault("mkdir"):
            raise Refused("permission_denied", "told to fail")
        if os.path.isdir(path):
            raise Refused("already_exists", f"directory already exists: {path}")
        if os.path.lexists(path):
            raise Refused("invalid_argument", f"path already exists but it is not a directory: {path}")
        os.makedirs(path)
        return {"entry": entry_of(path)}
    if method == "Move":
        source, target = box.path(request["source"]), box.path(request["destination"])
        os.lstat(source)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)
        return {"entry": entry_of(target)}
    if method == "Remove":
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        return {}
    if method == "ListDir":
        if not os.path.isdir(path):
            os.lstat(path)
            raise Refused("invalid_argument", f"path is not a directory: {path}")
        return {"entries": list(walk(os.path.realpath(path), request.get("depth", 0) or 1))}
    raise Refused("unimplemented", method)


def walk(directory, depth):
    for name in sorted(os.listdir(directory)):
        path = directory + "/" + name
        yield entry_of(path)
        if depth > 1 and os.path.isdir(path) and not os.path.islink(path):
            yield from walk(path, depth - 1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    # --- plumbing

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                data += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status, value=None, raw=None, kind="application/json", headers=()):
        data = raw if raw is not None else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if data or status not in (204, 304):
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def fail(self, status, message):
        self.reply(status, {"code": status, "message": message})

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True, encoding="utf-8", errors="surrogateescape"))
        data = self.body()
        with log_lock, open(ROOT + "/log", "a") as file:
            file.write(json.dumps([self.command, self.path, dict(self.headers), data[:2000].decode("latin-1")]) + "\n")
        try:
            if "E2b-Sandbox-Id" in self.headers or url.path == "/files":
                self.envd(url.path, data)
            else:
                self.control(url.path, data)
        except Refused as refused:
            self.reply(STATUS[refused.code], {"code": refused.code, "message": refused.message})
        except Cut:
            self.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = serve

    # --- control plane

    def control(self, path, data):
        wrong = fault("control")
        wrong, _, after = wrong.partition(":")
        if wrong.isdigit():
            headers = [("Retry-After", after or "0")] if wrong in ("429", "503") else []
            return self.reply(int(wrong), {"code": int(wrong), "message": "told to fail"}, headers=headers)
        if wrong == "html":
            return self.reply(200, raw=b"<html>a portal</html>", kind="text/html")
        if wrong == "silent":
            never()
        if path == "/health":
            return self.reply(200, raw=b"ok", kind="text/plain")
        bearer = fault("auth") == "bearer"  # as some compatible services want it
        if (self.headers.get("Authorization") != "Bearer " + KEY) if bearer else (self.headers.get("X-API-KEY") != KEY):
            return self.fail(401, "Invalid API key")
        request = json.loads(data) if data else {}
        # Those that have two paths: where sandboxes are made and listed, and where one is connected to.
        both = path.removeprefix("/v2") == "/sandboxes" or path.endswith("/connect")
        if both and fault("paths") == ("v1" if path.startswith("/v2/") else "v2"):
            return self.fail(405 if self.command == "POST" else 404, "no such path")
        path = path.removeprefix("/v2")
        if path == "/sandboxes":
            if self.command == "GET":
                return self.list_boxes()
            return self.create(request)
        found = re.fullmatch(r"/sandboxes/([a-z0-9]+)(?:/([a-z]+))?", path)
        if not found:
            return self.fail(404, "no such path")
        box = find_box(found[1], need_running=False)
        if box is None:
            return self.fail(404, f"sandbox {found[1]} doesn't exist")
        self.one(box, found[2], request)

    def create(self, request):
        if request.get("templateID") in (None, "missing"):
            return self.fail(404, f"template '{request.get('templateID')}' not found")
        if request.get("timeout", 15) <= 0:
            return self.fail(400, "timeout must be positive")
        if type(request.get("network", {}).get("allowPublicTraffic", True)) is not bool:
            return self.fail(400, "network.allowPublicTraffic is no boolean")
        while fault("hold"):
            time.sleep(0.02)  # until the test says otherwise
        box = Box(request)
        with boxes_lock:
            boxes[box.id] = box
        if fault("create") == "lost":  # made, and the answer is not heard
            raise Cut()
        if fault("create").isdigit():  # made, as a proxy on the way tells it
            return self.reply(int(fault("create")), raw=b"")
        closed = not request.get("network", {}).get("allowPublicTraffic", True)
        token = {"envdAccessToken": "no\nheader"} if fault("grant") else {}
        self.reply(201, {**box.answer(), **token, **({"trafficAccessToken": secrets.token_hex(8)} if closed else {})})

    def list_boxes(self):
        states = self.query.get("state", "running,paused").split(",")
        wanted = dict(urllib.parse.parse_qsl(urllib.parse.unquote(self.query.get("metadata", ""))))
        wanted = {urllib.parse.unquote(k): urllib.parse.unquote(v) for k, v in wanted.items()}
        rows = [box.info() for box in list(boxes.values()) if find_box(box.id, False) and box.state in states
                and wanted.items() <= box.metadata.items()]
        self.reply(200, sorted(rows, key=lambda row: row["startedAt"], reverse=True))

    def one(self, box, act, request):
        if act is None and self.command == "GET":
            return self.reply(200, {**box.info(), "envdAccessToken": box.token, "domain": None})
        if act is None and self.command == "DELETE":
            if fault("kill"):
                return self.fail(500, "told to fail")
            box.kill()
            return self.reply(204)
        if act == "timeout":
            box.end = time.time() + max(0, request["timeout"])
            return self.reply(204)
        if act == "pause":
            if box.state == "paused":
                return self.fail(409, "sandbox is already paused")
            box.state = "paused"
            box.cut_streams()
            return self.reply(204)
        if act in ("connect", "resume"):
            resumed = box.state == "paused"
            box.state = "running"
            box.end = max(0 if resumed else box.end, time.time() + request.get("timeout", 300))
            return self.reply(201 if resumed else 200, box.answer())
        self.fail(404, "no such path")

    # --- envd

    def find_envd(self, path):
        box_id = self.headers.get("E2b-Sandbox-Id")
        if box_id:
            return find_box(box_id)
        for box in list(boxes.values()):  # a signed URL carries no sandbox
            if find_box(box.id) and self.signature(box) == self.query.get("signature"):
                return box
        return None

    def signature(self, box):
        act = "read" if self.command == "GET" else "write"
        parts = [self.query.get("path", ""), act, self.query.get("username", ""), box.token]
        if "signature_expiration" in self.query:
            parts.append(self.query["signature_expiration"])
        digest = hashlib.sha256(":".join(parts).encode()).digest()
        return "v1_" + base64.b64encode(digest).decode().rstrip("=")

    def envd(self, path, data):
        wrong = fault("envd")
        box = find_box(self.headers.get("E2b-Sandbox-Id") or "") or self.find_envd(path)
        if box is None or wrong == "502":
            return self.reply(502, {"sandboxId": self.headers.get("E2b-Sandbox-Id"), "message": "The sandbox was not found", "code": 502})
        if wrong == "silent":
            never()
        if path == "/health":
            return self.reply(204)
        signed = path == "/files" and self.query.get("signature") == self.signature(box)
        if (self.headers.get("X-Access-Token") != box.token and not signed) or wrong == "401":
            return self.reply(401, {"code": "unauthenticated" if path.count("/") > 1 else 401, "message": "unauthorized access, please provide a valid access token or method signing if supported"})
        if wrong.isdigit():
            return self.fail(int(wrong), "told to fail")
        if fault("version").startswith("0.3.") and "Authorization" not in self.headers:
            return self.reply(401, {"code": "unauthenticated", "message": "no user specified"})
        user = base64.b64decode(self.headers.get("Authorization", "Basic dXNlcjo=")[6:]).decode().rstrip(":")
        if user not in ("user", "root"):
            return self.reply(401, {"code": "unauthenticated", "message": f"invalid username: '{user}'"})
        if path == "/files":
            return self.read_file(box) if self.command == "GET" else self.write_file(box, data)
        if path == "/metrics":
            return self.reply(200, {"ts": int(time.time()), "cpu_count": 2, "cpu_used_pct": 1.5, "mem_total": 512 << 20, "mem_used": 64 << 20})
        service, _, method = path.strip("/").partition("/")
        try:
            self.rpc(box, service, method, data)
        except FileNotFoundError as error:
            raise Refused("not_found", f"path not found: {error.filename}")
        except PermissionError as error:
            raise Refused("permission_denied", str(error))
        except OSError as error:
            raise Refused("internal", str(error))

    def rpc(self, box, service, method, data):
        if service == "process.Process" and method in ("Start", "Connect"):
            return self.stream(box, method, data)
        request = json.loads(data)
        if service == "filesystem.Filesystem":
            return self.reply(200, files_call(box, method, request))
        if method == "List":
            rows = [{"config": p.config, "pid": p.pid, **({"tag": p.tag} if p.tag else {})} for p in list(box.processes.values()) if not p.end]
            return self.reply(200, {"processes": rows})
        process = self.select(box, request)
        wrong = fault("input") if method in ("SendInput", "CloseStdin") else ""
        if wrong == "silent":
            never()
        if wrong == method:
            return self.fail(503, "told to fail")
        if wrong == "cut":  # taken, and not answered
            process.write(base64.b64decode(request["input"]["stdin"]))
            raise Cut()
        if method == "SendInput":
            given = request["input"]
            if "pty" in given:
                if process.master is None:
                    raise Refused("internal", "tty not assigned to process")
                os.write(process.master, base64.b64decode(given["pty"]))
            else:
                process.write(base64.b64decode(given.get("stdin", "")))
        elif method == "CloseStdin":
            if process.master is not None:
                raise Refused("internal", "tty has no stdin to close")
            if process.popen.stdin:
                with process.input_lock:
                    process.popen.stdin.close()
        elif method == "SendSignal":
            process.signal({"SIGNAL_SIGKILL": 9, "SIGNAL_SIGTERM": 15, 9: 9, 15: 15}[request["signal"]])
        elif method == "Update":
            process.resize(request["pty"]["size"])
        else:
            raise Refused("unimplemented", method)
        self.reply(200, {})

    @staticmethod
    def select(box, request):
        wanted = request["process"]
        for process in list(box.processes.values()):
            if process.pid == wanted.get("pid") or (process.tag and process.tag == wanted.get("tag")):
                return process
        raise Refused("not_found", f"process with {wanted} not found")

    # --- streams

    def frame(self, flag, value):
        data = json.dumps(value, separators=(",", ":")).encode()
        self.chunk(struct.pack(">BI", flag, len(data)) + data)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/connect+json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def end_stream(self, error=None):
        self.frame(2, {"error": error} if error else {})
        self.wfile.write(b"0\r\n\r\n")

    def stream(self, box, method, data):
        wrong = fault("stream")
        if wrong in ("silent", "html") or wrong.isdigit():
            stream_fault(self, wrong)
        size = struct.unpack(">BI", data[:5])[1]
        request = json.loads(data[5:5 + size])
        timeout = self.headers.get("Connect-Timeout-Ms")
        deadline = time.monotonic() + int(timeout) / 1000 if timeout else None
        self.begin_stream()
        try:
            process = self.select(box, request) if method == "Connect" else Process(box, request, request.get("stdin", True))
        except Refused as refused:
            return self.end_stream({"code": refused.code, "message": refused.message})
        listener = process.subscribe()
        if method == "Start":
            box.processes[process.pid] = process
            process.begin()
        with box.lock:
            box.streams.add(self.connection)
        try:
            if wrong:
                stream_fault(self, wrong, process)
            self.follow(process, listener, deadline, kill=method == "Start")
        finally:
            listener.gone = True
            with box.lock:
                box.streams.discard(self.connection)

    def follow(self, process, listener, deadline, kill):
        quiet = float(self.headers.get("Keepalive-Ping-Interval") or 90)
        while True:
            left = quiet if deadline is None else min(quiet, deadline - time.monotonic())
            try:
                event = listener.get(timeout=max(left, 0.001))
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    if kill and not process.end:
                        process.signal(signal.SIGKILL)
                    return self.end_stream({"code": "deadline_exceeded", "message": "context deadline exceeded"})
                event = {"keepalive": {}}
            self.frame(0, {"event": event})
            if "end" in event:
                return self.end_stream()

    # --- files

    def read_file(self, box):
        path = box.path(self.query.get("path", ""))
        if not os.path.exists(path):
            return self.fail(404, f"path '{path}' does not exist")
        if os.path.isdir(path):
            return self.fail(400, f"path '{path}' is a directory")
        with open(path, "rb") as file:
            data = file.read()
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        headers = [("Content-Disposition", "inline"), ("Vary", "Accept-Encoding")]
        if fault("files") == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(data) + 100))
            self.end_headers()
            self.wfile.write(data)
            raise Cut()
        if not found:
            return self.reply(200, raw=data, kind="application/octet-stream", headers=headers)
        first, last = int(found[1]), int(found[2]) if found[2] else len(data) - 1
        if first >= len(data):
            return self.reply(416, raw=b"", headers=[("Content-Range", f"bytes */{len(data)}")])
        part = data[first:last + 1]
        headers.append(("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}"))
        self.reply(206, raw=part, kind="application/octet-stream", headers=headers)

    def write_file(self, box, data):
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("multipart/form-data"):
            message = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + data)
            parts = [(self.query.get("path") or part.get_filename(), part.get_payload(decode=True)) for part in message.get_payload()]
        else:
            parts = [(self.query["path"], data)]
        wrong = fault("files")
        if wrong == "507":
            return self.fail(507, "not enough disk space available")
        written = []
        for name, content in parts:
            path = box.path(name)
            if os.path.isdir(path):
                return self.fail(400, f"path is a directory: {path}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            written.append({"path": path, "name": os.path.basename(path), "type": "file"})
        self.reply(200, written)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048

    def handle_error(self, *_):
        pass


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    try:
        while sys.stdin.read(1):
            pass
    finally:
        for box in list(boxes.values()):
            if box.state != "killed":
                box.kill()


threading.stack_size(256 << 10)
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
main()
