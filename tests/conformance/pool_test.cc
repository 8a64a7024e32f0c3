// What a pool promises: one owner at a time, nothing of an earlier owner, only living sandboxes, bounds.
#include "belljar/pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class PoolTest : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    fs::create_directory(home_.path() + "/.cache");
    if (!test::is_root()) return;
    home_.give_to(test::user_uid(), test::user_gid());
    ASSERT_EQ(::chown((home_.path() + "/.cache").c_str(), test::user_uid(), test::user_gid()), 0);
  }
  void TearDown() override {
    pool_ = nullptr;
    EXPECT_TRUE(fs::is_empty(place_.path())) << "workspaces are left";
    EXPECT_EQ(left_.report(), "");
  }

  void create(PoolOptions options) {
    options.workspaces = place_.path();
    options.sandbox.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", home_.path()}};
    auto made = Pool::create(std::move(options));
    if (!made) throw std::runtime_error(made.error().line());
    pool_ = *std::move(made);
  }
  Lease take(const TakeOptions& options = {}) {
    auto lease = pool_->take(options);
    if (!lease) ADD_FAILURE() << lease.error().line();
    return *std::move(lease);
  }
  template <class Done>
  void await(Done done) {
    EXPECT_TRUE(test::eventually(done));
  }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    auto result = sandbox.exec(text);
    if (!result) return result.error().line();
    return result->out.bytes + result->err.bytes;
  }

  const test::TempDir place_;
  const test::TempDir home_;
  const test::Leftovers left_;
  std::unique_ptr<Pool> pool_;
};

// One line for each kind of state a command can leave behind; `look` prints "gone" when nothing is there.
struct PoolKind {
  const char *name, *plant, *look;
};
constexpr PoolKind kPoolKinds[] = {
    {"process", "sleep 4242 >/dev/null 2>&1 & until grep -qxz 4242 /proc/$!/cmdline; do sleep 0.01; done",
     "grep -lxz 4242 /proc/[0-9]*/cmdline 2>/dev/null || echo gone"},
    {"workspace file", "mkdir -p d && echo x >d/f", "ls -A . | grep . || echo gone"},
    {"tmp", "echo x >/tmp/planted", "cat /tmp/planted 2>/dev/null || echo gone"},
    {"var tmp", "echo x >/var/tmp/planted", "cat /var/tmp/planted 2>/dev/null || echo gone"},
    {"shared memory", "echo x >/dev/shm/planted", "cat /dev/shm/planted 2>/dev/null || echo gone"},
    {"SysV shared memory", "ipcmk -M 4096 >/dev/null", "tail -n +2 /proc/sysvipc/shm | grep . || echo gone"},
    {"SysV semaphores", "ipcmk -S 1 >/dev/null", "tail -n +2 /proc/sysvipc/sem | grep . || echo gone"},
    {"SysV messages", "ipcmk -Q >/dev/null", "tail -n +2 /proc/sysvipc/msg | grep . || echo gone"},
    {"TCP listener",
     "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",4711)); s.listen(); time.sleep(600)' "
     ">/dev/null 2>&1 & until grep -q :1267 /proc/net/tcp; do sleep 0.02; done",
     "grep :1267 /proc/net/tcp || echo gone"},
    {"abstract socket",
     "python3 -c 'import socket,time; s=socket.socket(socket.AF_UNIX); s.bind(\"\\0planted\"); s.listen(); time.sleep(600)' "
     ">/dev/null 2>&1 & until grep -q @planted /proc/net/unix; do sleep 0.02; done",
     "grep @planted /proc/net/unix || echo gone"},
    {"cache", "mkdir -p ~/.cache && echo x >~/.cache/planted", "cat ~/.cache/planted 2>/dev/null || echo gone"},
};

// Those made later, too.
TEST_F(PoolTest, NoneSeesAnothersWorkspaceUnlessThePolicyShowsThem) {
  if (test::is_root() && test::on_overlay("/var/tmp")) GTEST_SKIP() << "needs idmapped mounts";
  for (const bool shown : {false, true}) {
    PoolOptions options{.ready = 1, .most = 4};
    if (shown) options.sandbox.policy.filesystem.siblings = Siblings::kShown;
    options.sandbox.policy.filesystem.tmp = Tmp::kShared;  // else nothing below /tmp is seen at all
    create(std::move(options));
    const Lease first = take(), second = take(), third = take();
    for (const Lease* other : {&second, &third}) {
      ASSERT_TRUE((*other)->write_file("secret", "SECRET\n"));
      EXPECT_EQ((*other)->exec("chmod 777 . && chmod 644 secret").value().exit_code, 0);
    }
    for (const Lease* other : {&second, &third}) {
      const std::string path = (*other)->workspace() + "/secret";
      EXPECT_EQ(first->exec("cat " + path).value().out.bytes, shown ? "SECRET\n" : "") << path;
      EXPECT_EQ(first->exec("echo own >own; cat own").value().out.bytes, "own\n");
    }
  }
}

TEST_F(PoolTest, NothingOfAnEarlierOwnerIsThere) {
  create({.ready = 1, .most = 2});
  for (const PoolKind& kind : kPoolKinds) {
    std::string before;
    {
      const Lease lease = take();
      EXPECT_EQ(lease->exec(kind.plant).value().exit_code, 0) << kind.name;
      before = out(*lease, kind.look);
      EXPECT_NE(before, "gone\n") << kind.name << ": it was not planted";
    }
    const Lease next = take();
    EXPECT_EQ(out(*next, kind.look), "gone\n") << kind.name;
  }
  // Keys cannot even be made: add_key(2) is refused, so there is no keyring to empty. The twin is the same call outside.
  const char* const key =
      "python3 -c 'import ctypes; print(ctypes.CDLL(None, use_errno=True).syscall(248, b\"user\", b\"k\", b\"v\", 1, -4))'";
  EXPECT_EQ(out(*take(), key), "-1\n");
}

TEST_F(PoolTest, WhoKeptAPointerHoldsAStoppedSandbox) {
  create({.ready = 1, .most = 2});
  Lease lease = take();
  const std::shared_ptr<Sandbox> kept = lease.sandbox();
  EXPECT_EQ(out(*kept, "echo mine"), "mine\n");
  lease.give_back();
  lease.give_back();
  await([&] { return !kept->exec("true"); });
  EXPECT_EQ(kept->exec("true").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(kept->write_file("x", "x").error().code(), Code::kFailedPrecondition);
}

TEST_F(PoolTest, NobodyGetsWhatAnotherHas) {
  create({.ready = 3, .most = 8});
  std::mutex mutex;
  std::set<std::string> seen;
  std::set<const Sandbox*> held;
  std::atomic<int> wrong{0}, good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 6; ++i) {
        auto lease = pool_->take();
        if (!lease) {
          ++wrong;
          continue;
        }
        {
          const std::lock_guard lock(mutex);
          if (!seen.insert((*lease)->id()).second || !held.insert(&**lease).second) ++wrong;
        }
        const std::string word = std::to_string(t) + "-" + std::to_string(i);
        if (out(**lease, "cat note 2>/dev/null; echo " + word + " >note; cat note") == word + "\n") ++good;
        const std::lock_guard lock(mutex);
        held.erase(&**lease);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(good.load(), 48);
  EXPECT_EQ(pool_->stats().taken, 48U);
}

// The first is made by who makes the pool; of the others each waits here until the other one is being made, too.
TEST_F(PoolTest, SparesAreMadeSideBySideAndNoneTooMany) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two processors";
  std::mutex mutex;
  std::condition_variable changed;
  int prepared = 0, alone = 0;
  create({.ready = 3, .most = 8, .prepare = [&](Sandbox&) -> Result<void> {
            std::unique_lock lock(mutex);
            ++prepared;
            changed.notify_all();
            if (prepared > 1 && !changed.wait_for(lock, 60s, [&] { return prepared >= 3; })) ++alone;
            return {};
          }});
  await([&] { return pool_->stats().ready == 3; });
  pool_->stop();  // nothing is being made after that
  EXPECT_EQ(pool_->stats().made, 3U);
  EXPECT_EQ(alone, 0);
}

// What waits for a processor while a sandbox is handed out is the making of the next ones, and never a command.
TEST_F(PoolTest, SparesAreMadeBehindOtherWorkAndTheirCommandsAreNot) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  if (own > 9) GTEST_SKIP() << "there is no lower priority to have";
  std::mutex mutex;
  std::vector<int> priorities;
  create({.ready = 2, .most = 4, .prepare = [&](Sandbox&) -> Result<void> {
            const std::lock_guard lock(mutex);
            priorities.push_back(::getpriority(PRIO_PROCESS, 0));
            return {};
          }});
  await([&] { return pool_->stats().ready == 2; });
  const Lease first = take(), second = take();
  for (const Lease* lease : {&first, &second})
    EXPECT_EQ(out(**lease, "cut -d' ' -f19 /proc/self/stat"), std::to_string(own) + "\n");
  pool_->stop();  // nothing is being made after that
  ASSERT_GE(priorities.size(), 2U);
  EXPECT_EQ(priorities[0], own);
  EXPECT_EQ(priorities[1], own + 10);
}

TEST_F(PoolTest, TheDeadAreReplacedAndNeverHandedOut) {
  std::mutex mutex;
  std::vector<Sandbox*> all;
  create({.ready = 2, .most = 4, .prepare = [&](Sandbox& sandbox) -> Result<void> {
            const std::lock_guard lock(mutex);
            all.push_back(&sandbox);
            return {};
          }});
  await([&] { return pool_->stats().ready == 2; });
  {
    const std::lock_guard lock(mutex);
    for (Sandbox* sandbox : all) EXPECT_TRUE(sandbox->stop());  // as if their pid 1 was killed
  }
  const Lease lease = take();
  EXPECT_EQ(out(*lease, "echo alive"), "alive\n");
  await([&] { return pool_->stats().ready == 2; });
  EXPECT_GE(pool_->stats().dead, 1U);
}

TEST_F(PoolTest, TheWaitingAreAskedNowAndThen) {
  std::atomic<Sandbox*> first{nullptr};
  create({.ready = 1, .most = 2, .check_interval = 30ms, .prepare = [&](Sandbox& sandbox) -> Result<void> {
            Sandbox* none = nullptr;
            first.compare_exchange_strong(none, &sandbox);
            return {};
          }});
  EXPECT_TRUE(first.load()->stop());
  await([&] { return pool_->stats().dead == 1 && pool_->stats().ready == 1; });
  EXPECT_EQ(pool_->stats().made, 2U);
}

TEST_F(PoolTest, NoMoreThanTheBound) {
  create({.ready = 1, .most = 2});
  std::optional<Lease> one = take();
  const Lease two = take();
  EXPECT_EQ(pool_->take({.patience = 50ms}).error().code(), Code::kResourceExhausted);
  const CancelToken cancel = *CancelToken::create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(30ms);  // take() waits by then; one that comes later proves less
    cancel.cancel();
  });
  EXPECT_EQ(pool_->take({.cancel = cancel}).error().code(), Code::kCanceled);
  canceller.join();
  std::thread giver([&] {
    std::this_thread::sleep_for(30ms);  // as above
    one.reset();
  });
  EXPECT_EQ(out(*take(), "echo third"), "third\n");
  giver.join();
}

// On the taker's thread and on the pool's own.
TEST_F(PoolTest, APrepareThatThrowsCostsOneSandboxAndNotThePool) {
  std::atomic<bool> throws = false;
  create({.ready = 1, .most = 2, .prepare = [&](Sandbox&) -> Result<void> {
            if (throws) throw std::runtime_error("no such recipe");
            return {};
          }});
  throws = true;
  std::optional<Lease> first = take();
  for (int i = 0; i < 3; ++i) {
    const auto refused = pool_->take({.patience = 60s});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kInternal) << refused.error().line();
    EXPECT_EQ(refused.error().reason(), "no such recipe");
  }
  first.reset();
  await([&] { return pool_->stats().last_error.find("no such recipe") != std::string::npos; });
  throws = false;
  EXPECT_EQ(out(*take(), "echo goes on"), "goes on\n");
}

// Neither made ahead nor on the taker's time.
TEST_F(PoolTest, OneThatDiesWhileItIsPreparedIsNotHandedOut) {
  std::atomic<bool> ends = false;
  create({.ready = 1, .most = 3, .prepare = [&](Sandbox& sandbox) -> Result<void> {
            if (ends) return sandbox.stop();
            return {};
          }});
  ends = true;
  std::optional<Lease> first = take();
  const auto refused = pool_->take({.patience = 60s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable) << refused.error().line();
  ends = false;
  EXPECT_EQ(out(*take(), "echo lives"), "lives\n");
}

TEST_F(PoolTest, AQuietPoolShrinksAndWakesUp) {
  // On a busy machine the first may have been idle for too long before there is a second: then with more time.
  for (auto idle = 100ms; idle < 60s && (pool_ == nullptr || pool_->stats().made < 2); idle *= 2) {
    create({.ready = 2, .most = 4, .idle_time = idle});
    await([&] { return pool_->stats().ready == 0; });
  }
  const auto made = pool_->stats().made;
  EXPECT_GE(made, 2U);
  std::this_thread::sleep_for(200ms);  // for one that is made all the same
  EXPECT_EQ(pool_->stats().made, made) << "nobody takes, nothing is made";
  EXPECT_EQ(out(*take(), "echo made at once"), "made at once\n");
}

TEST_F(PoolTest, StopDrains) {
  create({.ready = 1, .most = 3});
  std::optional<Lease> patient = take();
  std::optional<Lease> stubborn = take();
  const std::shared_ptr<Sandbox> kept = stubborn->sandbox();
  std::thread giver([&] {
    std::this_thread::sleep_for(50ms);  // stop() waits by then; one that comes later proves less
    patient.reset();
  });
  pool_->stop(300ms);
  giver.join();
  EXPECT_EQ(kept->exec("true").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(pool_->take().error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(pool_->stats().ready, 0U);
  stubborn.reset();
  pool_->stop();
}

TEST_F(PoolTest, WhatIsWrongIsSaidAtOnce) {
  PoolOptions options;
  options.workspaces = place_.path();
  options.sandbox.workspace = place_.path();
  EXPECT_EQ(Pool::create(options).error().code(), Code::kInvalidArgument);
  options.sandbox.workspace.clear();
  options.sandbox.transaction = "t";
  options.sandbox.state_dir = home_.path();
  const auto transaction = Pool::create(options);
  ASSERT_FALSE(transaction);
  EXPECT_EQ(transaction.error().what(), "cannot make a pool of sandboxes in a transaction");
  EXPECT_FALSE(fs::exists(home_ / "txn"));
  options.sandbox.transaction.clear();
  options.workspaces = place_.path() + std::string("\0x", 2);
  const auto cut = Pool::create(options);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().reason(), "it holds a NUL byte");
  options.workspaces = place_.path();
  EXPECT_TRUE(Pool::create(options)) << "the twin";
  options.ready = 3;
  options.most = 2;
  EXPECT_EQ(Pool::create(options).error().code(), Code::kInvalidArgument);
  options.most = 4;
  options.sandbox.backend = "no-such";
  EXPECT_EQ(Pool::create(options).error().code(), Code::kUnimplemented);
  options.sandbox.backend = "native";
  options.prepare = [](Sandbox&) -> Result<void> { return Error(Code::kInternal, "it does not want to"); };
  EXPECT_EQ(Pool::create(options).error().what(), "it does not want to");
  options.prepare = nullptr;
  options.workspaces = "/no/such/place";
  EXPECT_EQ(Pool::create(options).error().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace belljar
