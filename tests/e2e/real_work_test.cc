// Real work inside `workspace-write` without a network, as it would run outside (issue 2, "It must not get in the way"). Each case
// is a shell text, the program it needs and what it must print.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

struct Work {
  const char* name;
  const char* needs;
  const char* text;
  const char* prints;  // somewhere in stdout
};

void PrintTo(const Work& work, std::ostream* stream) { *stream << work.name; }

constexpr Work kWork[] = {
    {"Git", "git",
     "git init -q r && cd r && git config user.name x && git config user.email x@y && echo a >a && git add a && git commit -qm one "
     "&& "
     "git checkout -qb side && git worktree add -q ../tree && git -C ../tree log --oneline && git status --short && echo clean",
     "clean"},
    {"Make", "make",
     "printf '#include <stdio.h>\\nint main(){puts(\"made\");}' >m.c; printf 'm: m.c\\n\\tcc -o m m.c\\n' >Makefile; make >&2 && "
     "./m",
     "made"},
    {"CMakeNinja", "ninja",
     "printf '#include <iostream>\\nint main(){std::cout<<\"built\";}' >m.cc; printf 'cmake_minimum_required(VERSION "
     "3.20)\\nproject(x "
     "CXX)\\nadd_executable(m m.cc)\\n' >CMakeLists.txt; cmake -G Ninja -S . -B b >&2 && cmake --build b >&2 && b/m",
     "built"},
    {"PythonVenvSqliteAsyncio", "python3",
     "python3 -m venv --without-pip v && v/bin/python -c '\n"
     "import sqlite3, asyncio\n"
     "c = sqlite3.connect(\"db\"); c.execute(\"create table t(a)\"); c.commit()\n"
     "async def main():\n"
     "  p = await asyncio.create_subprocess_exec(\"echo\", \"child\", stdout=-1)\n"
     "  print((await p.communicate())[0].decode())\n"
     "asyncio.run(main())'",
     "child"},
    {"PythonMultiprocessing", "python3",
     "cat >m.py <<'E'\n"
     "import multiprocessing as m\n"
     "from multiprocessing import shared_memory\n"
     "if __name__ == '__main__':\n"
     "  with m.Pool(2) as pool: print(pool.map(abs, [-1, 2]))\n"
     "  with m.Manager() as manager: print(dict(manager.dict(a=1)))\n"
     "  shared = shared_memory.SharedMemory(create=True, size=10); shared.close(); shared.unlink()\n"
     "E\npython3 m.py",
     "[1, 2]\n{'a': 1}"},
    {"SocketsKnowTheirNames", "python3",
     "python3 -c '\n"
     "import os, socket\n"
     "server = socket.socket(socket.AF_UNIX); path = os.getcwd() + \"/s\"; server.bind(path); server.listen()\n"
     "near = socket.socket(socket.AF_UNIX); near.bind(\"near\")\n"
     "inet = socket.socket(); inet.bind((\"127.0.0.1\", 0))\n"
     "socket.socket(socket.AF_UNIX).connect(server.getsockname())\n"
     "print(server.getsockname() == path, near.getsockname(), inet.getsockname()[0])'",
     "True near 127.0.0.1"},
    {"NodeSpawnWorkerHttp", "node",
     "cat >m.js <<'E'\n"
     "const child = require('child_process'), http = require('http'), {Worker} = require('worker_threads');\n"
     "console.log(child.spawnSync('echo', ['spawned']).stdout.toString());\n"
     "new Worker('0', {eval: true}).on('exit', () => console.log('worker'));\n"
     "console.log(Object.keys(require('os').networkInterfaces()), require('os').userInfo().uid > 0);\n"
     "const server = http.createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', () =>\n"
     "  http.get({port: server.address().port}, r => { r.on('data', d => console.log('' + d)); r.on('end', () => server.close()); "
     "}));\n"
     "E\nnode m.js",
     "served"},
    {"NpmCi", "npm",
     "mkdir dep app && cd dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' >package.json && npm pack --silent >&2 && cd "
     "../app && "
     "echo '{\"name\":\"app\",\"version\":\"1.0.0\",\"dependencies\":{\"dep\":\"file:../dep/dep-1.0.0.tgz\"}}' >package.json && "
     "npm install --offline --no-audit >&2 && rm -rf node_modules && npm ci --offline --no-audit >&2 && ls node_modules",
     "dep"},
    {"Cargo", "cargo", "cargo new -q --vcs none c && cd c && cargo build -q && target/debug/c", "Hello, world!"},
    {"Java", "javac",
     "echo 'class A{public static void main(String[] a){System.out.println(\"ran\");}}' >A.java && javac A.java && java A", "ran"},
    {"JobControl", "bash", "exec bash -c 'set -m; sleep 0.2 & jobs; wait; echo waited'", "waited"},
    {"Tmux", "tmux", "tmux -f /dev/null new-session -d 'sleep 300' && tmux ls && tmux kill-server && echo gone", "gone"},
    {"Script", "script", "script -qc tty /dev/null", "/dev/pts/0"},
    {"ManyProcesses", "sh", "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done; echo $i", "2000"},
    {"OddNames", "sh", "touch 'a b' \"$(printf 'a\\nb')\" \"$(printf '\\377\\376')\" && ls | wc -l", "4"},
    {"Gdb", "gdb", "gdb -batch -ex run -ex 'print 6*7' --args /bin/true", "$1 = 42"},
    {"Strace", "strace", "strace -o trace /bin/true && grep -c execve trace", "1"},
    {"Ssh", "ssh", "ssh -V 2>&1", "OpenSSH"},
    {"Postgres", "psql",
     "PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1); mkdir s && initdb -D \"$PWD/db\" -A trust --no-sync >&2 && "
     "pg_ctl -D db -w -l log -o \"-k $PWD/s -p 54329 -h 127.0.0.1\" start >&2 && "
     "psql -h \"$PWD/s\" -p 54329 -Atc 'create table t as select generate_series(1, 1000) a' postgres >&2 && "
     "psql -h 127.0.0.1 -p 54329 -Atc 'select sum(a) from t' postgres; pg_ctl -D db -m fast stop >&2",
     "500500"},
    {"Sqlite", "sqlite3",
     "sqlite3 d 'pragma journal_mode=wal; create table t(a)' && for i in 1 2 3 4; do (for j in 1 2 3 4 5; do "
     "sqlite3 -cmd '.timeout 60000' d \"insert into t values($i)\"; done) & done; wait; sqlite3 d 'select count(*) from t'",
     "20"},
};

class RealWork : public testing::TestWithParam<Work> {};

TEST_P(RealWork, RunsInsideAsOutside) {
  const Work& work = GetParam();
  BELLJAR_NEEDS(user_namespaces());
  // Debian's package starts a server and keeps it: `./dev test` does not install it.
  if (work.name == std::string_view("Postgres") && find_program(work.needs).empty()) GTEST_SKIP() << "needs PostgreSQL";
  BELLJAR_NEEDS(program(work.needs));
  const TempDir inside;
  const Outcome outcome = belljar({"run", "-c", work.text}, {.cwd = inside.path(), .timeout = std::chrono::minutes(4)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find(work.prints), std::string::npos) << outcome;
}

INSTANTIATE_TEST_SUITE_P(Case, RealWork, testing::ValuesIn(kWork), [](const auto& work) { return std::string(work.param.name); });

// A tool finds its own files absent where they are absent, although a secret of the same folder is hidden.
TEST(RealWork, AHomeThatNoToolHasUsedYetMakesNoneOfThemComplain) {
  BELLJAR_NEEDS(user_namespaces());
  BELLJAR_NEEDS(program("git"));
  const TempDir inside;
  const TempDir home;
  home.make_dir(".config");
  const Outcome outcome =
      belljar({"run", "-c",
               "git init -q r && git -C r status --short && for f in .config/git/ignore .cargo/config.toml .m2/settings.xml "
               ".config/pip/other; do cat ~/$f 2>&1 | grep -c 'No such file'; done; cat ~/.config/git/credentials; true"},
              {.cwd = inside.path(), .env = {{"HOME", home.path()}}});
  EXPECT_EQ(outcome.out, "1\n1\n1\n1\n") << outcome;
  EXPECT_NE(outcome.err.find("credentials: No such file"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.err.find("Permission denied"), std::string::npos) << outcome;
  // The twin: what is there is hidden, by its own name and no other.
  home.write(".config/git/credentials", "SECRET\n");
  home.write(".config/git/ignore", "*.o\n");
  const Outcome hidden = belljar({"run", "-c", "cat ~/.config/git/ignore ~/.config/git/credentials"},
                                 {.cwd = inside.path(), .env = {{"HOME", home.path()}}});
  EXPECT_EQ(hidden.out, "*.o\n") << hidden;
  EXPECT_NE(hidden.err.find("credentials: Permission denied"), std::string::npos) << hidden;
}

// Where a machine has none of the hidden files, nobody complains of them.
TEST(RealWork, WhoFindsNoneOfTheHiddenFilesSaysNothingOfThem) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir inside, home;
  const std::string script =
      "wget -q -O- http://127.0.0.1:1/; curl -sS -n http://127.0.0.1:1/; git init -q r; git -C r fetch -q https://127.0.0.1:1/x; "
      "pip --version; npm config list; ssh -o BatchMode=yes 127.0.0.1; gpg --list-keys";
  const Outcome outcome = belljar({"run", "-c", script}, {.cwd = inside.path(), .env = {{"HOME", home.path()}}});
  for (const char* name : {".netrc", ".curlrc", ".wgetrc", ".git-credentials", ".config", ".npmrc", ".pypirc", ".ssh"})
    EXPECT_EQ(outcome.err.find(home / name), std::string::npos) << name << outcome;
  for (const char* complaint : {"ermission denied", "ead-only file system", "gpg: failed", "gpg: Fatal"})
    EXPECT_EQ(outcome.err.find(complaint), std::string::npos) << complaint << outcome;
}

// libpq says at each connection that a password file is no plain file; one that it may not open it passes over.
TEST(RealWork, AHiddenPasswordFileOfPostgresIsAPlainFile) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir inside;
  const TempDir home;
  const auto look = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "run");
    flags.insert(flags.end(),
                 {"-c", "stat -c %F ~/.pgpass; cat ~/.pgpass; echo x >>~/.pgpass; chmod 600 ~/.pgpass; cat ~/.pgpass"});
    return belljar(flags, {.stdin_is = Input::kNull, .cwd = inside.path(), .env = {{"HOME", home.path()}}});
  };
  const Outcome absent = look({});
  EXPECT_EQ(absent.out, "") << absent;
  EXPECT_NE(absent.err.find(".pgpass: Permission denied"), std::string::npos) << absent;
  home.write(".pgpass", "*:*:*:*:secret\n");
  const Outcome there = look({});
  EXPECT_EQ(there.out, "regular empty file\n") << there;
  EXPECT_EQ(read_file(home / ".pgpass"), "*:*:*:*:secret\n");
  // The twin: a policy that shows it.
  EXPECT_EQ(look({"--read", home / ".pgpass"}).out, "regular file\n*:*:*:*:secret\n*:*:*:*:secret\n");
}

// ping(8) and other programs that give up privileges end where they may not ask for it.
TEST(RealWork, WhoAsksToKeepCapabilitiesKeepsNone) {
  BELLJAR_NEEDS(user_namespaces());
  BELLJAR_NEEDS(program("python3"));
  const TempDir inside;
  const Outcome asked = belljar({"run", "--", "python3", "-c",
                                 "import ctypes, re\n"
                                 "prctl = ctypes.CDLL(None).prctl\n"
                                 "print(prctl(8, 1), prctl(28, 0))\n"  // PR_SET_KEEPCAPS, PR_SET_SECUREBITS
                                 "print(set(re.findall('Cap.*:\\t(.*)', open('/proc/self/status').read())))"},
                                {.cwd = inside.path()});
  EXPECT_EQ(asked.out, "0 -1\n{'0000000000000000'}\n") << asked;
}

TEST(RealWork, TwoHundredMegabytesOfOutputArriveWhole) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir inside;
  const Outcome outcome =
      run({"/bin/sh", "-c", std::string(kBelljar) + " run -- head -c 200000000 /dev/zero | wc -c"}, {.cwd = inside.path()});
  EXPECT_EQ(outcome.out, "200000000\n") << outcome;
}

TEST(RealWork, FilesBelongToTheWorkspacesOwner) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir inside;
  EXPECT_EQ(belljar({"run", "-c", "mkdir d && touch d/f"}, {.cwd = inside.path()}).exit_code, 0);
  const auto listed = run({"stat", "-c", "%u", inside.path(), inside / "d/f"});
  const std::size_t line = listed.out.find('\n');
  EXPECT_EQ(listed.out.substr(0, line + 1), listed.out.substr(line + 1)) << listed;
}

TEST(RealWork, NothingIsLeftBehind) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir inside;
  const Leftovers left({inside.path()});
  belljar({"run", "--memory", "200MiB", "-c", "setsid sleep 1000 & (sleep 1000 &) ; echo x >/tmp/x; echo x >/dev/shm/x"},
          {.cwd = inside.path()});
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar::test
