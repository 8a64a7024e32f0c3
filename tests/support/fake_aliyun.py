#!/usr/bin/env python3
"""A small AgentBay for tests: control plane, direct tool calls and a legacy JSON-RPC gateway on one port, as Aliyun's public clients
speak to them. It isolates nothing: commands run as whoever started it. What its tools answer is what those clients read; the
service itself was never asked.

    fake_aliyun.py DIRECTORY        homes of sessions are made there; prints its port, ends when its stdin does

Every line of DIRECTORY/faults is something that it does otherwise, WHERE=WHAT or WHERE=WHAT*N for N times. WHERE is an action
("CreateMcpSession"), a way to a tool ("callTool", "mcp") or one of the settings below. Every request is told in DIRECTORY/log, in
the order of arrival, each by one line.

    link=off            sessions have no address of their own     toollist=array|none   how ToolList comes (default: text)
    data=string         Data of CallMcpTool is JSON in a string   direct=string         the same of a direct call
    grant=http|wrong    its address is no https; its id is none   delete=N pause=N resume=N contexts=N    how many looks they take
    contexts=failed     the contexts cannot be loaded             idle=MILLISECONDS     instead of every session's Timeout
    longest=MILLISECONDS  what a command may last, instead of what it is asked to
    now=MILLISECONDS    what time it is, where what a session is used for must not depend on how fast the machine is
"""
import json, os, re, resource, secrets, shutil, signal, subprocess, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fake_aliyun_tools import TOOLS, ToolError, run_shell
from fake_machine import Machine, never

ROOT = os.path.realpath(sys.argv[1])
KEY = "akm-" + "0123456789abcdef" * 2
ACCESS = ("LTAI-0123456789", "secret-0123456789abcdef")
SERVERS = {name: "wuying_shell" if name == "shell" else "wuying_filesystem" for name in ["shell", *TOOLS]}
log_lock, sessions_lock = threading.Lock(), threading.Lock()
sessions = {}
gateway = Machine("TMPDIR=" + ROOT + "/gateway")  # never switched off: who uses it ends what is theirs


def fault(where):
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
    def __init__(self, status, code, message):
        self.status, self.code, self.message = status, code, message


class Cut(Exception):
    """The connection ends here, in the middle of whatever."""


NOT_FOUND = Refused(400, "InvalidMcpSession.NotFound", "code: 400, Resource [McpSession] is not found.")


def now():
    told = fault("now")
    return int(told) / 1000 if told else time.monotonic()


class Session:
    def __init__(self, fields):
        self.id = "session-04x" + secrets.token_hex(8)
        self.token = secrets.token_hex(16)
        self.image, self.labels = fields.get("ImageId", "linux_latest"), json.loads(fields.get("Labels", "{}"))
        self.timeout = int(fields.get("Timeout", 300))
        self.contexts = json.loads(fields.get("PersistenceDataList", "[]"))
        self.status, self.looks, self.used = "RUNNING", 0, now()
        self.home = f"{ROOT}/{self.id}"
        self.temp = self.home + ".tmp"  # in place of the /tmp of its own that a machine has
        os.mkdir(self.home)
        os.mkdir(self.temp)
        self.machine = Machine("AGENTBAY_FAKE_SESSION=" + self.id)

    def path(self, path):
        for home in ("/home/wuying", "/workspace"):
            if path == home or path.startswith(home + "/"):
                path = self.home + path[len(home):]
        return os.path.normpath(os.path.join(self.home, path))

    def environment(self):
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home, "USER": "wuying", "LOGNAME": "wuying",
                "TMPDIR": self.temp, "AGENTBAY_FAKE_SESSION": self.id}

    def answer(self, port):
        tools = [{"name": name, "description": "", "inputSchema": {}, "server": server, "tool": name}
                 for name, server in SERVERS.items()]
        data = {"SessionId": self.id, "Success": True, "ResourceUrl": "", "AppInstanceId": "fake", "VpcResource": False}
        shape = fault("toollist")
        if shape != "none":
            data["ToolList"] = tools if shape == "array" else json.dumps(tools)
        if fault("link") != "off":
            scheme = "http://fake.invalid" if fault("grant") == "http" else f"http://127.0.0.1:{port}"
            data.update(Token=self.token, LinkUrl=scheme + "/link/" + self.id, WsUrl="")
        if fault("grant") == "wrong":
            data["SessionId"] = "../etc"
        return data

    def is_idle(self):
        limit = fault("idle")
        return now() - self.used > (int(limit) / 1000 if limit else self.timeout)

    def end(self):
        self.status = "DELETED"
        self.machine.switch_off()
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.temp, ignore_errors=True)


def find(fields):
    session = sessions.get(fields.get("SessionId", ""))
    if session and session.status == "RUNNING" and session.is_idle():
        session.end()
    if session is None or session.status == "DELETED":
        raise NOT_FOUND
    return session


def call_tool(session, name, args):
    """What a tool says: {content, isError}."""
    if name == "shell":
        text, failed = run_shell(args, session.home, session.environment(), fault, session.machine)
    elif name in TOOLS:
        try:
            text, failed = TOOLS[name](session.path, args), False
        except (OSError, ToolError, KeyError) as error:
            text, failed = str(error), True
    else:
        text, failed = f"tool {name} not found", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


class Actions:
    """One method for each action; `handler` says where we are reached."""

    def CreateMcpSession(self, handler, fields):
        if fields.get("ImageId") == "missing":
            raise Refused(400, "InvalidImageId.NotFound", "The image is not found.")
        if "Timeout" in fields and not fields["Timeout"].isdigit():
            raise Refused(400, "InvalidParameter", "Timeout")
        session = Session(fields)
        with sessions_lock:
            sessions[session.id] = session
        while fault("hold"):
            time.sleep(0.02)  # until the test says otherwise
        return session.answer(handler.server.server_address[1])

    def GetSession(self, handler, fields):
        session = find(fields)
        if session.status in ("PAUSING", "RESUMING"):
            session.looks -= 1
            if session.looks < 0:
                session.status = "PAUSED" if session.status == "PAUSING" else "RUNNING"
                session.used = now()
        return {**session.answer(handler.server.server_address[1]), "Status": session.status}

    def GetSessionDetail(self, handler, fields):
        session = find(fields)
        if session.status == "DELETING":
            session.looks -= 1
            if session.looks < 0:
                session.end()
                raise NOT_FOUND
        return {"Aliuid": "1", "ImageId": session.image, "IsDeleted": 0, "Status": session.status}

    def ListSession(self, handler, fields):
        wanted = json.loads(fields.get("Labels", "{}"))
        rows = [{"SessionId": s.id, "SessionStatus": s.status} for s in list(sessions.values())
                if s.status not in ("DELETED", "DELETING") and wanted.items() <= s.labels.items()]
        return rows

    def CallMcpTool(self, handler, fields):
        session = find(fields)
        if session.status != "RUNNING":
            raise Refused(400, "InvalidMcpSession.Status", f"The session is {session.status}.")
        data = call_tool(session, fields.get("Name"), json.loads(fields.get("Args", "{}")))
        return json.dumps(data) if fault("data") == "string" else data

    def ListMcpTools(self, handler, fields):
        return json.dumps([{"name": name, "server": server, "tool": name} for name, server in SERVERS.items()])

    def RefreshSessionIdleTime(self, handler, fields):
        find(fields).used = now()
        return {}

    def DeleteSessionAsync(self, handler, fields):
        session = find(fields)
        session.status, session.looks = "DELETING", int(fault("delete") or 0)
        return {}

    def PauseSessionAsync(self, handler, fields):
        session = find(fields)
        session.status, session.looks = "PAUSING", int(fault("pause") or 0)
        return {}

    def ResumeSessionAsync(self, handler, fields):
        session = find(fields)
        session.status, session.looks = "RESUMING", int(fault("resume") or 0)
        return {}

    def GetContextInfo(self, handler, fields):
        session = find(fields)
        how = fault("contexts")
        session.looks += 1
        status = "Failed" if how == "failed" else "Success" if session.looks > int(how or 0) else "Running"
        rows = [{"contextId": c["ContextId"], "path": c["Path"], "status": status, "taskType": "download"} for c in session.contexts]
        return {"ContextStatus": json.dumps([{"type": "data", "data": json.dumps(rows)}])}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

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

    def send(self, status, data, kind="application/json;charset=utf-8", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def reply(self, status, value, headers=()):
        self.send(status, json.dumps(value).encode(), headers=headers)

    def reply_badly(self, wrong, value):
        """As `wrong` says, what was done having been done."""
        data = json.dumps(value).encode()
        if wrong == "lost":
            raise Cut()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if wrong == "cut":
            self.wfile.write(b"%x\r\n%s" % (len(data), data[:len(data) // 2]))
            raise Cut()
        if wrong == "huge":  # more than is read of an answer
            for _ in range(65):
                self.wfile.write(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
        for at in range(0, len(data), 7):  # slow
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data[at:at + 7]), data[at:at + 7]))
            time.sleep(0.002)  # so that the pieces come one by one; those that do not are as good
        self.wfile.write(b"0\r\n\r\n")

    def stumble(self, where):
        """What goes wrong before anything is done; or the name of what is to go wrong after it."""
        wrong = fault(where)
        wrong, _, after = wrong.partition(":")
        if wrong == "silent":
            never()
        if wrong == "html":
            self.send(200, b"<html>a portal</html>", "text/html")
        elif wrong == "page":
            self.send(502, b"<html>bad gateway</html>", "text/html")
        elif wrong == "list":
            self.send(200, b"[1, 2]")
        elif wrong == "throttle":
            self.reply(429 if after == "429" else 400, self.error("Throttling.User", "Request was denied due to user flow control."),
                       [("Retry-After", after)] if after and after != "429" else [])
        elif wrong.isdigit():
            self.reply(int(wrong), self.error("ServiceUnavailable" if wrong[0] == "5" else "Told", "told to fail \x1b[31m" + KEY))
        else:
            return wrong
        raise Refused(0, "", "")

    def error(self, code, message):
        return {"RequestId": self.request_id, "Code": code, "Message": message, "HostId": "fake"}

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        self.request_id = secrets.token_hex(8)
        data = self.body()
        with log_lock, open(ROOT + "/log", "a") as file:
            file.write(json.dumps([self.path, dict(self.headers), data[:4000].decode("latin-1")]) + "\n")
        try:
            if url.path == "/mcp":
                self.gateway(data)
            elif url.path.startswith("/link/"):
                self.direct(url.path.split("/")[2], data)
            else:
                self.action(url, data)
        except Refused as refused:
            if refused.status:
                self.reply(refused.status, self.error(refused.code, refused.message))
        except Cut:
            self.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    # --- the control plane

    def action(self, url, data):
        form = urllib.parse.parse_qsl(data.decode(), strict_parsing=bool(data))
        fields = dict(urllib.parse.parse_qsl(url.query) + form)
        name = fields.get("Action", "")
        if url.path != "/" or self.headers.get("Content-Type", "") != "application/x-www-form-urlencoded" and form:
            raise Refused(400, "InvalidRequest", "no form")
        if fields.get("Version") != "2025-05-06" or self.headers.get("x-acs-version") != "2025-05-06":
            raise Refused(400, "InvalidVersion", "The specified version is invalid.")
        if self.headers.get("x-acs-action") != name or not re.fullmatch(r"[0-9a-zA-Z-]{8,}", fields.get("SignatureNonce", "")):
            raise Refused(400, "InvalidRequest", "x-acs-action, SignatureNonce")
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", fields.get("Timestamp", "")):
            raise Refused(400, "InvalidTimeStamp.Format", "Specified time stamp is not well formatted.")
        if fields.get("Authorization") != "Bearer " + KEY:
            raise Refused(400, "NOT_LOGIN", "You are not logged in or your login token has expired")
        if not hasattr(Actions, name):
            raise Refused(400, "InvalidAction.NotFound", "The specified action is not found.")
        wrong = self.stumble(name)
        if wrong == "unknown":
            raise Refused(400, "InvalidAction.NotFound", "The specified action is not found.")
        if wrong == "gone":
            raise NOT_FOUND
        if wrong == "forbidden":
            raise Refused(403, "Forbidden.NotAllowlisted", "The account is not on the list.")
        answer = {"RequestId": self.request_id, "HttpStatusCode": 200, "Code": "ok", "Success": True, "Message": ""}
        if wrong == "fail":
            return self.reply(200, {**answer, "Success": False, "Code": "InternalError", "HttpStatusCode": 500, "Message": "told to fail"})
        if wrong == "datafail":
            return self.reply(200, {**answer, "Data": {"Success": False, "ErrMsg": "exceed limit of sessions"}})
        if wrong == "nodata":
            return self.reply(200, answer)
        answer["Data"] = getattr(Actions(), name)(self, fields)
        if wrong:
            return self.reply_badly(wrong, answer)
        self.reply(200, answer)

    # --- a session's own address

    def direct(self, session_id, data):
        request = json.loads(data)
        wrong = self.stumble("callTool")
        session = sessions.get(session_id)
        if session and session.status == "RUNNING" and session.is_idle():
            session.end()
        if session is None or session.status != "RUNNING":
            return self.reply(404, {"message": "no such session"})
        if wrong == "expired":
            session.token = secrets.token_hex(16)
        if self.headers.get("X-Access-Token") != session.token or request["token"] != session.token:
            return self.reply(401, {"message": "invalid token"})
        if request["server"] != SERVERS.get(request["tool"]) or not re.fullmatch(r"link-\d+-\d{9}", request["requestId"]):
            return self.reply(400, {"message": "no such server"})
        inner = {"result": call_tool(session, request["tool"], request["args"])}
        answer = {"data": json.dumps(inner) if fault("direct") == "string" else inner}
        if wrong == "noresult":
            answer = {"data": {}}
        if wrong in ("lost", "cut", "slow", "huge"):
            return self.reply_badly(wrong, answer)
        self.reply(200, answer)

    # --- the legacy gateway

    def gateway(self, data):
        request = json.loads(data)
        wrong = self.stumble("mcp")
        if (self.headers.get("X-Access-Key-Id"), self.headers.get("X-Access-Key-Secret")) != ACCESS:
            return self.send(401, b"invalid access key " + self.headers.get("X-Access-Key-Secret", "").encode(), "text/plain")
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request.get("jsonrpc") != "2.0" or wrong == "error":
            return self.reply(200, {**answer, "error": {"code": -32000, "message": "told to fail"}})
        if request["method"] == "tools/list":
            names = [name for name in ("shell", "read_file", "write_file") if wrong != "noshell" or name != "shell"]
            return self.reply(200, {**answer, "result": {"tools": [{"name": n, "description": "", "inputSchema": {}} for n in names]}})
        params = request["params"]
        if params["name"] != "shell":
            return self.reply(200, {**answer, "error": {"code": -32601, "message": "no such tool"}})
        home = ROOT + "/gateway"
        os.makedirs(home, exist_ok=True)
        text, _ = run_shell(params["arguments"], home, {"PATH": os.environ.get("PATH", ""), "HOME": home, "TMPDIR": home}, fault, gateway)
        answer["result"] = json.loads(text)
        if wrong in ("lost", "cut", "slow", "huge"):
            return self.reply_badly(wrong, answer)
        self.reply(200, answer)


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
        for session in list(sessions.values()):
            if session.status != "DELETED":
                session.end()


threading.stack_size(256 << 10)
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
main()
