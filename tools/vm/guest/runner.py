"""Runs the cases of /job/job.json inside the test guest, one after another, and sends a line of JSON about each to the host.

A case is a bash script that runs as root or as the ordinary user `agent`, in a directory and a cgroup of its own, under sysctls of its
own. After it the runner looks at what it left behind: processes, mounts, cgroups, files in shared directories. All of that is undone
before the next case, so that cases do not depend on one another.
"""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")
AGENT = 1000
SHARED = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/run/user/1000"]
HOMES = {"user": "/home/agent", "root": "/root"}


def port():
    """The virtio port to the host. udev would have made a link by its name."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for name in pathlib.Path("/sys/class/virtio-ports").glob("*/name"):
            if name.read_text().strip() == "belljar.results":
                return open("/dev/" + name.parent.name, "wb", buffering=0)
        time.sleep(0.02)
    raise SystemExit("the port belljar.results did not appear")


def cgroup_parent(case):
    if not (CGROUPS / "cgroup.controllers").exists():
        return None
    if case["as"] == "user" and case["cgroup"] == "session":
        return CGROUPS / "user.slice/user-1000.slice/user@1000.service/app.slice"
    return CGROUPS / "system.slice"


def processes():
    """Every process that is no kernel thread (those have no executable to resolve, or it is not ours to read)."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            comm, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
            if int(rest[6]) & 0x00200000:  # PF_KTHREAD
                continue
            found[int(entry.name)] = (rest[19], f"process {entry.name} ({comm}) {rest[0]}")
        except (OSError, ValueError):
            continue  # it ended while we looked
    return found


def mounts():
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return {line.split()[0]: "mount " + line.split()[4] for line in lines}


def cgroups():
    return {path for path, _, _ in os.walk(CGROUPS)}


def files():
    return {os.path.join(top, name) for top in SHARED if os.path.isdir(top) for name in os.listdir(top)}


def snapshot():
    return processes(), mounts(), cgroups(), files()


def left_behind(before, own_cgroup):
    then = before[0]
    now = processes()
    left = [text for pid, (started, text) in now.items() if then.get(pid, (None,))[0] != started]
    left += [text for key, text in mounts().items() if key not in before[1]]
    left += ["cgroup " + path for path in sorted(cgroups() - before[2]) if path != str(own_cgroup)]
    left += ["file " + path for path in sorted(files() - before[3])]
    return left


def kill_cgroup(path):
    try:
        (path / "cgroup.kill").write_text("1")
    except OSError:
        pass


def remove_cgroup(path):
    deadline = time.monotonic() + 5
    while path.exists() and time.monotonic() < deadline:
        for directory, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                time.sleep(0.02)


def sysctl_path(name):
    return pathlib.Path("/proc/sys") / name.replace(".", "/")


def run(case):
    result = {"name": case["name"], "missing": []}
    saved = {}
    for name, value in case["sysctl"].items():
        try:
            saved[name] = sysctl_path(name).read_text()
            sysctl_path(name).write_text(value)
        except OSError as error:
            result["missing"].append(f"sysctl {name}: {error.strerror}")
    as_user = case["as"] == "user"
    home = pathlib.Path(HOMES[case["as"]])
    work = home / "work"
    work.mkdir()
    parent = cgroup_parent(case)
    group = parent / "case.scope" if parent else None
    if group:
        group.mkdir()
    if as_user:
        os.chown(work, AGENT, AGENT)
        if group and case["cgroup"] == "session":
            for path in (group, group / "cgroup.procs", group / "cgroup.subtree_control", group / "cgroup.threads"):
                os.chown(path, AGENT, AGENT)
    before = snapshot()
    environment = {
        "PATH": os.environ["PATH"] if not as_user else "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "USER": "agent" if as_user else "root",
        "LANG": "C.UTF-8",
    }
    if as_user:
        environment["XDG_RUNTIME_DIR"] = "/run/user/1000"

    def become():
        if group:
            (group / "cgroup.procs").write_text("0")
        if as_user:
            os.setgroups([])
            os.setresgid(AGENT, AGENT, AGENT)
            os.setresuid(AGENT, AGENT, AGENT)
            os.environ.clear()

    # memfds: a process that outlives its case cannot keep us waiting on a pipe.
    out, err = os.memfd_create("out"), os.memfd_create("err")
    started = time.monotonic()
    child = subprocess.Popen(
        ["/bin/bash", "-c", case["script"], case["name"]],
        stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=work, env=environment, preexec_fn=become, start_new_session=True,
    )
    try:
        result["exit_code"] = child.wait(timeout=case["timeout"])
        result["timed_out"] = False
    except subprocess.TimeoutExpired:
        result["exit_code"] = -signal.SIGKILL
        result["timed_out"] = True
        os.killpg(child.pid, signal.SIGKILL)
        if group:
            kill_cgroup(group)
        child.wait()
    result["seconds"] = round(time.monotonic() - started, 3)
    deadline = time.monotonic() + 1.5  # killed is not yet gone: an exiting process needs the processor once more
    while (left := left_behind(before, group)) and time.monotonic() < deadline:
        time.sleep(0.05)
    result["left"] = left
    for key, fd in (("out", out), ("err", err)):
        size = os.fstat(fd).st_size
        result[key] = base64.b64encode(os.pread(fd, min(size, 1 << 20), 0)).decode()
        os.close(fd)

    for pid, (began, _) in processes().items():
        if before[0].get(pid, (None,))[0] != began:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    for path in sorted(cgroups() - before[2]):
        kill_cgroup(pathlib.Path(path))
        remove_cgroup(pathlib.Path(path))
    if group:
        kill_cgroup(group)
        remove_cgroup(group)
    for path in files() - before[3]:
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
    shutil.rmtree(work, ignore_errors=True)
    for name, value in saved.items():
        sysctl_path(name).write_text(value)
    return result


def main():
    host = port()

    def send(line):
        data = (json.dumps(line) + "\n").encode()
        while data:
            data = data[host.write(data) :]

    job = json.loads(pathlib.Path("/job/job.json").read_text())
    missing = []
    for name, value in job["sysctl"].items():
        try:
            sysctl_path(name).write_text(value)
        except OSError as error:
            missing.append(f"sysctl {name}: {error.strerror}")
    send({"kernel": os.uname().release, "boot_seconds": time.monotonic(), "missing": missing})
    for case in job["cases"]:
        try:
            send(run(case))
        except Exception as error:  # one broken case must not cost the others
            send({"name": case["name"], "broken": repr(error)})
    send({"end": True})


main()
