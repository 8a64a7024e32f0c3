"""An AIO sandbox server for tests (github.com/agent-infra/sandbox, 1.9): /v1/bash and /v1/file over a directory of this machine. It
isolates nothing. Part of fake_volcengine.py, whose `fault` says what is to go wrong."""
import base64, os, secrets, shutil, signal, subprocess, threading
from email.parser import BytesParser

from fake_machine import Machine

TRUNCATED = "\n... [truncated] ...\n"
FILE_ERRORS = [(FileNotFoundError, "not_found"), (PermissionError, "permission_denied"), (FileExistsError, "already_exists"),
               (IsADirectoryError, "invalid_target"), (NotADirectoryError, "invalid_target")]


class Invalid(Exception):
    """What the server's own schema refuses: status 422."""


class Failed(Exception):
    """success = false, with status 200."""

    def __init__(self, message, data=None):
        self.message, self.data = message, data


def need(request, *names):
    for name in names:
        if name not in request:
            raise Invalid(name)
    return [request[name] for name in names]


class Command:
    def __init__(self, box, text, cwd, env, hard):
        self.id, self.text, self.status, self.exit_code = secrets.token_hex(6), text, "running", None
        self.streams = {"stdout": bytearray(), "stderr": bytearray()}
        self.changed = threading.Condition()
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": box.home, "USER": "gem", "TMPDIR": box.temp, "AIO_BOX": box.mark,
               **box.envs, **env}
        # A pipe of stdin that stays open, as the server has it.
        self.popen = box.machine.start(lambda: subprocess.Popen(
            ["/bin/bash", "-c", text.replace("/home/gem", box.home)], cwd=cwd, env=env, bufsize=0, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True))
        if self.popen is None:
            raise Failed("it was ended meanwhile")
        self.readers = [threading.Thread(target=self.read, args=(name,), daemon=True) for name in self.streams]
        for reader in self.readers:
            reader.start()
        threading.Thread(target=self.follow, daemon=True).start()
        if hard is not None:
            timer = threading.Timer(hard, self.end, args=("timed_out", signal.SIGKILL))
            timer.daemon = True
            timer.start()
            self.timer = timer

    def read(self, name):
        stream = getattr(self.popen, name)
        while data := os.read(stream.fileno(), 65536):
            with self.changed:
                self.streams[name] += data
                self.changed.notify_all()

    def follow(self):
        code = self.popen.wait()
        for reader in self.readers:  # the end comes when nobody holds the output any more
            reader.join()
        if hasattr(self, "timer"):
            self.timer.cancel()
        with self.changed:
            if self.status == "running":
                self.status, self.exit_code = "completed", code if code >= 0 else 128 - code
            self.changed.notify_all()

    def end(self, status, number):
        with self.changed:
            if self.status != "running":
                return
            if number == signal.SIGKILL or status == "timed_out":
                self.status = status
            self.changed.notify_all()
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass

    def wait(self, seconds, offsets=None):
        """Until it ends, or (with offsets) says something new."""
        def done():
            return self.status != "running" or (offsets and any(len(self.streams[name]) > at for name, at in offsets.items()))
        with self.changed:
            self.changed.wait_for(done, seconds)

    def text_of(self, name, start=0):
        return bytes(self.streams[name][start:]).decode("utf-8", "replace")

    def info(self):
        return {"command_id": self.id, "command": self.text, "status": self.status, "exit_code": self.exit_code}


class AioBox:
    """One sandbox, as seen from inside."""

    def __init__(self, box_id, home, envs=()):
        self.id, self.home, self.envs = box_id, home, dict(envs)
        self.mark = f"{box_id}.{os.getpid()}"  # of this server alone: others that run beside it have a box of that name, too
        self.machine = Machine("AIO_BOX=" + self.mark)
        self.temp = home + ".tmp"  # in place of the /tmp of its own that a machine has
        os.makedirs(home, exist_ok=True)
        os.makedirs(self.temp, exist_ok=True)
        self.sessions, self.lock = {}, threading.Lock()

    def kill(self):
        self.machine.switch_off()
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.temp, ignore_errors=True)

    def path(self, path):
        if not path.startswith("/"):
            raise Failed("path must be absolute", {"error_type": "invalid_path", "message": "path must be absolute"})
        if path == "/home/gem" or path.startswith("/home/gem/"):
            path = self.home + path[len("/home/gem"):]
        return os.path.normpath(path)

    def session(self, session_id):
        session = self.sessions.get(session_id)
        if session is None:
            raise Failed(f"Session {session_id} not found")
        return session

    # --- bash

    def bash_exec(self, request, most, fault):
        text, = need(request, "command")
        session_id = request.get("session_id")
        with self.lock:
            if session_id:
                if fault("session") == "dropped":
                    self.sessions.pop(session_id, None)
                commands = self.session(session_id)
                if commands and commands[-1].status == "running":
                    raise Failed(f"Session {session_id} is busy")
            else:
                session_id = secrets.token_hex(8)
                commands = self.sessions[session_id] = []
            command = Command(self, text, self.path(request.get("exec_dir") or self.home), request.get("env") or {},
                              request.get("hard_timeout"))
            commands.append(command)
        slow = False
        if not request.get("async_mode"):
            soft = float(fault("soft")) if fault("soft") else request.get("timeout")  # it may return earlier than it is asked to
            command.wait(most if soft is None else min(soft, most))
            slow = command.status == "running" and (soft is None or soft > most)
        if slow:
            return None
        data = {"session_id": session_id, **command.info()}
        limit = request.get("max_output_length", 50000)
        for name, offset in (("stdout", "offset"), ("stderr", "stderr_offset")):
            raw = bytes(command.streams[name])
            data[offset], said = len(raw), raw.decode("utf-8", "replace")
            if limit and len(said) > limit:
                said = said[:limit // 2] + TRUNCATED + said[-(limit // 2):]
            data[name] = said or None
        return data

    def bash_output(self, request, most):
        session_id, = need(request, "session_id")
        commands = self.session(session_id)
        wanted = request.get("command_id")
        command = next((each for each in commands if each.id == wanted), None) if wanted else commands[-1]
        if command is None:
            raise Failed(f"Command {wanted} not found")
        offsets = {"stdout": request.get("offset", 0), "stderr": request.get("stderr_offset", 0)}
        if request.get("wait"):
            wait = request.get("wait_timeout", 30)
            command.wait(min(wait, most), offsets)
            if wait > most and command.status == "running" and not any(len(command.streams[n]) > at for n, at in offsets.items()):
                return None
        said = {name: bytes(command.streams[name][at:]) for name, at in offsets.items()}
        return {"session_id": session_id, "stdout": said["stdout"].decode("utf-8", "replace"),
                "stderr": said["stderr"].decode("utf-8", "replace"), "offset": offsets["stdout"] + len(said["stdout"]),
                "stderr_offset": offsets["stderr"] + len(said["stderr"]), "command": command.info()}

    def bash_write(self, request):
        session_id, text = need(request, "session_id", "input")
        command = self.session(session_id)[-1]
        command.popen.stdin.write(text.encode())
        return None

    def bash_kill(self, request):
        session_id, = need(request, "session_id")
        name = request.get("signal", "SIGTERM")
        if name not in ("SIGTERM", "SIGKILL", "SIGINT"):
            raise Invalid("signal")
        for command in self.session(session_id):
            command.end("killed", getattr(signal, name))
        return None

    # --- files

    def file_read(self, request):
        path, = need(request, "file")
        with open(self.path(path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        start, end = request.get("start_line") or 0, request.get("end_line")
        return {"content": "\n".join(lines[start:end]), "file": path}

    def file_write(self, request):
        path, content = need(request, "file", "content")
        encoding = request.get("encoding", "utf-8")
        if encoding not in ("utf-8", "base64", "raw"):
            raise Invalid("encoding")
        data = base64.b64decode(content, validate=True) if encoding == "base64" else content.encode()
        full = self.path(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "ab" if request.get("append") else "wb") as file:
            file.write(data)
        return {"file": path, "bytes_written": len(data)}

    def file_list(self, request):
        path, = need(request, "path")
        full = self.path(path)
        files = [{"name": name, "path": os.path.join(full, name), "is_directory": os.path.isdir(os.path.join(full, name)),
                  "size": os.lstat(os.path.join(full, name)).st_size} for name in sorted(os.listdir(full))]
        directories = sum(each["is_directory"] for each in files)
        return {"path": path, "files": files, "total_count": len(files), "directory_count": directories,
                "file_count": len(files) - directories}

    def file_upload(self, kind, data):
        form = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + data)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
        if "file" not in parts:
            raise Invalid("file")
        name = parts["path"].get_payload() if "path" in parts else "/tmp/" + parts["file"].get_filename()
        content = parts["file"].get_payload(decode=True)
        with open(self.path(name), "wb") as file:
            file.write(content)
        return {"file_path": name, "file_size": len(content), "success": True}

    def context(self):
        return {"home_dir": "/home/gem", "workspace": "/home/gem", "version": "1.9.4", "detail": {"system": {"os": "Linux"}}}


def file_error(error, operation, path):
    kind = next((name for type_, name in FILE_ERRORS if isinstance(error, type_)), "io_error")
    number = getattr(error, "errno", None)
    return {"path": path, "operation": operation, "message": str(error), "error_type": kind, "retryable": kind == "io_error",
            "errno": number, "errno_name": os.strerror(number) if number else None, "exception_type": type(error).__name__}


def serve_aio(handler, box, path, data, request, most, fault):
    """Answers one request; `most`: the seconds after which the gateway gives up; None of bash means that it did."""
    def envelope(value, **more):
        handler.reply(200, {"success": True, "message": "Operation successful", "data": value, "hint": None, **more})

    what = path.removeprefix("/v1/")
    try:
        if what == "sandbox":
            return envelope(None, **box.context())
        if what == "bash/exec":
            done = box.bash_exec(request, most, fault)
            return envelope(done) if done else handler.reply(504, {"message": "upstream request timeout"})
        if what == "bash/output":
            done = box.bash_output(request, most)
            return envelope(done) if done else handler.reply(504, {"message": "upstream request timeout"})
        if what == "file/download":
            if "path" not in handler.query:
                raise Invalid("path")
            with open(box.path(handler.query["path"]), "rb") as file:
                content = file.read()
            return handler.reply(200, raw=content, kind="application/octet-stream")
        if what == "file/upload":
            return envelope(box.file_upload(handler.headers.get("Content-Type", ""), data))
        calls = {"bash/write": box.bash_write, "bash/kill": box.bash_kill, "file/read": box.file_read, "file/write": box.file_write,
                 "file/list": box.file_list}
        if what not in calls:
            return handler.reply(404, {"detail": "Not Found"})
        envelope(calls[what](request))
    except Invalid as invalid:
        handler.reply(422, {"detail": [{"loc": ["body", str(invalid)], "msg": "Field required", "type": "missing"}]})
    except Failed as failed:
        handler.reply(200, {"success": False, "message": failed.message, "data": failed.data, "hint": None})
    except (OSError, UnicodeDecodeError) as error:
        error_data = file_error(error, what.split("/")[-1], handler.query.get("path") or (request or {}).get("file"))
        handler.reply(200, {"success": False, "message": str(error), "data": error_data, "hint": None})
