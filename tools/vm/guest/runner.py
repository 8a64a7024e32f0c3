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


def quietly(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass  # it is gone already, which is what we wanted


def kill_cgroup(path):
    quietly((path / "cgroup.kill").write_text, "1")


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


class Surroundings:
    """What a case runs in: its sysctls, directory and cgroup. `undo` also undoes whatever the case itself did outside of them."""

    def __init__(self, case):
        self.missing, self.saved = [], {}
        for name, value in case["sysctl"].items():
            try:
                self.saved[name] = sysctl_path(name).read_text()
                sysctl_path(name).write_text(value)
            except OSError as error:
                self.missing.append(f"sysctl {name}: {error.strerror}")
        self.as_user = case["as"] == "user"
        self.home = pathlib.Path(HOMES[case["as"]])
        self.work = self.home / "work"
        self.work.mkdir()
        parent = cgroup_parent(case)
        self.group = parent / "case.scope" if parent else None
        if self.group:
            self.group.mkdir()
        if self.as_user:
            os.chown(self.work, AGENT, AGENT)
            if self.group and case["cgroup"] == "session":
                for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
                    os.chown(self.group / name, AGENT, AGENT)
        if case["before"]:
            helper = subprocess.run(["/bin/bash", "-e", "-c", case["before"]], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if helper.returncode != 0:
                self.missing.append(f"before: exit code {helper.returncode}: {helper.stderr}")
        self.after = case["after"]
        self.before = snapshot()

    def environment(self):
        environment = {"HOME": str(self.home), "LANG": "C.UTF-8", "USER": "agent" if self.as_user else "root"}
        environment["PATH"] = "/usr/local/bin:/usr/bin:/bin" if self.as_user else os.environ["PATH"]
        if self.as_user:
            environment["XDG_RUNTIME_DIR"] = "/run/user/1000"
        return environment

    def enter(self):
        """In the child."""
        if self.group:
            (self.group / "cgroup.procs").write_text("0")
        if self.as_user:
            os.setgroups([])
            os.setresgid(AGENT, AGENT, AGENT)
            os.setresuid(AGENT, AGENT, AGENT)

    def left_behind(self):
        # Killed is not yet gone: an exiting process needs the processor once more.
        deadline = time.monotonic() + 1.5
        while (left := left_behind(self.before, self.group)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def undo(self):
        for pid, (began, _) in processes().items():
            if self.before[0].get(pid, (None,))[0] != began:
                quietly(os.kill, pid, signal.SIGKILL)
        for key, text in reversed(mounts().items()):
            if key not in self.before[1]:
                subprocess.run(["umount", "-l", text.removeprefix("mount ")], stderr=subprocess.DEVNULL)
        groups = [pathlib.Path(path) for path in cgroups() - self.before[2]] + ([self.group] if self.group else [])
        for path in groups:
            kill_cgroup(path)
        for path in groups:
            remove_cgroup(path)
        for path in files() - self.before[3]:
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else quietly(os.unlink, path)
        if self.after:
            subprocess.run(["/bin/bash", "-c", self.after], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        shutil.rmtree(self.work, ignore_errors=True)
        for name, value in self.saved.items():
            sysctl_path(name).write_text(value)


def execute(case, around):
    result = {"name": case["name"], "missing": around.missing, "timed_out": False}
    # memfds: a process that outlives its case cannot keep us waiting on a pipe.
    out, err = os.memfd_create("out"), os.memfd_create("err")
    started = time.monotonic()
    child = subprocess.Popen(
        ["/bin/bash", "-c", case["script"], case["name"]],
        stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=around.work, env=around.environment(), preexec_fn=around.enter,
        start_new_session=True,
    )
    try:
        result["exit_code"] = child.wait(timeout=case["timeout"])
    except subprocess.TimeoutExpired:
        result |= {"timed_out": True, "exit_code": -signal.SIGKILL}
        quietly(os.killpg, child.pid, signal.SIGKILL)
        if around.group:
            kill_cgroup(around.group)
        child.wait()
    result["seconds"] = round(time.monotonic() - started, 3)
    result["left"] = around.left_behind()
    for key, fd in (("out", out), ("err", err)):
        result[key] = base64.b64encode(os.pread(fd, min(os.fstat(fd).st_size, 1 << 20), 0)).decode()
        os.close(fd)
    return result


def run(case):
    around = Surroundings(case)
    try:
        return execute(case, around)
    finally:
        around.undo()


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
