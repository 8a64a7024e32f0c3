// A second process swaps, at full speed, what a name leads to, while the first one uses it: what is judged and what is done must be
// the same thing.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "escape/support_attack.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

// race.py ACT FREE HELD SECONDS: `way` leads to FREE or to HELD. `both` when acts met both, else how many ended how.
constexpr char kRace[] = R"(
import errno, os, signal, socket, sys, time
act, free, held, patience = sys.argv[1:]
def put(path):
  with open(path, 'w') as f: f.write('by the race')
def read():
  with open('way/file') as f: print(f.read())
def connect():
  with socket.socket(socket.AF_UNIX) as s: s.settimeout(0); s.connect('way')
acts = {'write': lambda: put('way/file'), 'settings': lambda: put('way/.mcp.json'), 'hook': lambda: put('way/hooks/pre-commit'),
        'read': read, 'connect': connect}
children = []
def beside(work):
  pid = os.fork()
  if pid: return children.append(pid)
  while True: work()
def swap():
  for target in held, free:
    os.symlink(target, 'next'); os.rename('next', 'way')
if act == 'connect':
  own = socket.socket(socket.AF_UNIX); own.bind(free); own.listen(4096)
  beside(lambda: own.accept()[0].close())
os.symlink(free, 'way')
beside(swap)
done, refused, other, end = 0, 0, 0, time.monotonic() + float(patience)
least = 200 if act == 'connect' else 1000
while done + refused + other < least or (not (done and refused) and time.monotonic() < end):
  try:
    acts[act](); done += 1
  except OSError as error:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS): refused += 1
    else: other += 1
for pid in children: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
if patience == '0':  # whoever swaps may not have had a turn
  os.symlink(held, 'last'); os.rename('last', 'way')
  try: acts[act](); done += 1
  except OSError: refused += 1
print('both' if done and refused else f'done {done} refused {refused} other {other}')
)";

struct Race : Attack {
  void SetUp() override {
    Attack::SetUp();
    BELLJAR_NEEDS(test::program("python3"));
    plant(workspace("race.py"), kRace);
    plant_dir(workspace("free/hooks"));
    plant(workspace("free/file"), "free");
  }
  // What the acts wrote to stdout and what came of them; of a thousand, and more until one was refused.
  std::string race(const std::string& act, const std::string& free, const std::string& held, Words options = {}) const {
    return acts(act, free, held, std::move(options), "60");
  }
  // The twin, where nothing is refused.
  std::string allowed(const std::string& act, const std::string& free, const std::string& held, Words options = {}) const {
    return acts(act, free, held, std::move(options), "0");
  }

 private:
  std::string acts(const std::string& act, const std::string& free, const std::string& held, Words options,
                   const std::string& seconds) const {
    options.insert(options.end(), {"--", "sh", "-c", "python3 race.py \"$@\"; rm -f way next own", "sh", act, free, held, seconds});
    return run_in(std::move(options)).out;
  }
};

TEST_F(Race, NothingIsWrittenOutside) {
  EXPECT_EQ(race("write", "free", beside()), "both\n");
  EXPECT_FALSE(exists(beside("file")));
  allowed("write", "free", beside(), {"--write", beside()});
  EXPECT_EQ(read_file(beside("file")), "by the race") << "the twin";
}

TEST_F(Race, NothingHiddenIsRead) {
  plant(workspace("deep/secret/file"), "hidden");
  plant(workspace("deep/pattern/file"), "hidden");
  for (const std::string& held : {std::string("deep/secret"), workspace("deep/pattern")}) {
    const std::string hidden = race("read", "free", held, {"--hide", workspace("deep/secret"), "--hide", "**/pattern/*"});
    EXPECT_EQ(hidden.find("hidden"), std::string::npos) << held;
    EXPECT_TRUE(hidden.ends_with("both\n")) << hidden.substr(0, 200);
    EXPECT_NE(allowed("read", "free", held).find("hidden"), std::string::npos) << "the twin";
  }
}

TEST_F(Race, NoProtectedNameIsMade) {
  plant(beside("none.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  for (const char* part : {".git/objects", ".git/refs", ".git/hooks"}) plant_dir(workspace(part));
  plant(workspace(".git/HEAD"), "ref: refs/heads/main\n");
  plant(workspace(".git/config"), "");
  for (const auto& [act, held, name] :
       {std::array<const char*, 3>{"hook", ".git", ".git/hooks/pre-commit"}, {"settings", ".", ".mcp.json"}}) {
    // In a transaction it is the commit that refuses.
    const std::string out = runs_are_transactions() ? allowed(act, "free", held) : race(act, "free", held);
    EXPECT_TRUE(runs_are_transactions() || out == "both\n") << act << ": " << out;
    EXPECT_FALSE(exists(workspace(name)));
    allowed(act, "free", held, {"--policy", beside("none.toml")});
    EXPECT_TRUE(exists(workspace(name))) << "the twin";
  }
}

TEST_F(Race, NoSocketOfTheHostIsReached) {
  const UniqueFd host = listen_unix(beside("sock"));
  ASSERT_TRUE(host.valid() && ::fcntl(host.get(), F_SETFL, O_NONBLOCK) == 0);
  hand_over();
  const auto touched = [&] {
    const UniqueFd accepted(::accept4(host.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return accepted.valid() || errno != EAGAIN;
  };
  EXPECT_EQ(race("connect", "own", beside("sock")), "both\n");
  EXPECT_FALSE(touched());
  allowed("connect", "own", beside("sock"), {"--allow-unix-socket", beside("sock")});
  EXPECT_TRUE(touched()) << "the twin";
}

}  // namespace
}  // namespace belljar::test
