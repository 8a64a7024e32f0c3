"""What the tools of fake_aliyun.py do: `shell` and those for files."""
import base64, json, os, shutil, signal, subprocess

MOST_OUTPUT = 50 << 10  # characters; the rest is cut without a word
LONGEST = 50_000  # milliseconds


class ToolError(Exception):
    pass


def said(out, err, **more):
    text = [data.decode(errors="replace")[:MOST_OUTPUT] for data in (out, err)]
    return json.dumps({"stdout": text[0], "stderr": text[1], **more, "traceId": "fake"})


def run_shell(args, home, environment, fault, machine):
    """(text, isError): what is said when nobody holds the output any more."""
    wrong = fault("shell")
    if wrong == "text":
        return "plain text of an old image", False
    if wrong == "errortext":
        return "the sandbox is on fire \x1b[31m", True
    if wrong == "nocode":
        return json.dumps({"output": "x"}), False
    timeout = min(int(fault("longest") or args.get("timeout_ms") or LONGEST), LONGEST) / 1000
    try:
        process = machine.start(lambda: subprocess.Popen(
            ["/bin/sh", "-c", args["command"]], cwd=args.get("cwd") or home, stdin=subprocess.DEVNULL,
            env={**environment, **args.get("envs", {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True))
        if process is None:
            raise ValueError("it was ended meanwhile")
    except (OSError, ValueError) as error:
        return json.dumps({"stdout": "", "stderr": str(error), "errorCode": 126}), True
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return said(out, err + b"command timed out", errorCode=-1), True
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    if code and wrong == "iserror":
        return said(out, err, errorCode=code), True
    return said(out, err, exit_code=code), bool(code) and wrong == "exitcode"


def read_file(path, args):
    with open(path(args["path"]), "rb") as file:
        file.seek(int(args.get("offset") or 0))
        data = file.read(int(args.get("length") or 0) or -1)
    return base64.b64encode(data).decode() if args.get("format") == "binary" else data.decode()


def write_file(path, args):
    target = path(args["path"])
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "a" if args.get("mode") == "append" else "w") as file:
        file.write(args["content"])
    return f"Successfully wrote to {args['path']}"


def list_directory(path, args):
    here = path(args["path"])
    return "\n".join(("[DIR] " if os.path.isdir(here + "/" + name) else "[FILE] ") + name for name in sorted(os.listdir(here)))


def get_file_info(path, args):
    info = os.stat(path(args["path"]))
    rows = {"name": os.path.basename(args["path"]), "path": args["path"], "size": info.st_size,
            "isDirectory": str(os.path.isdir(path(args["path"]))).lower(), "modTime": info.st_mtime, "mode": oct(info.st_mode),
            "owner": "wuying", "group": "wuying", "modified": info.st_mtime, "permissions": oct(info.st_mode & 0o777)}
    return "\n".join(f"{key}: {value}" for key, value in rows.items())


def create_directory(path, args):
    os.makedirs(path(args["path"]), exist_ok=True)
    return f"Successfully created directory {args['path']}"


def delete_file(path, args):
    target = path(args["path"])
    shutil.rmtree(target) if os.path.isdir(target) else os.unlink(target)
    return f"Successfully deleted {args['path']}"


def move_file(path, args):
    os.rename(path(args["source"]), path(args["destination"]))
    return f"Successfully moved {args['source']}"


TOOLS = {"read_file": read_file, "write_file": write_file, "list_directory": list_directory, "get_file_info": get_file_info,
         "create_directory": create_directory, "delete_file": delete_file, "move_file": move_file}
