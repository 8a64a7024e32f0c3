// Second threads that swap, at full speed, what a connect is decided on. None may ever reach a socket of the host.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/format.h"
#include "broker/support_fixture.h"
#include "support/must.h"

namespace belljar::test {
namespace {

using Attack = Inside;
INSTANTIATE_TEST_SUITE_P(As, Attack, testing::Values(Front::kRoot, Front::kUser), front_name);

constexpr auto kTime = std::chrono::seconds(2);

// Connections to an own socket, taken and closed as they come.
class OwnServer {
 public:
  explicit OwnServer(const std::string& path) : socket_(listen_at(path, SOCK_STREAM)), thread_([this] { take(); }) {}
  ~OwnServer() {
    shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void take() {
    for (int fd = 0; (fd = accept(socket_.get(), nullptr, nullptr)) >= 0;) close(fd);
  }
  UniqueFd socket_;
  std::thread thread_;
};

struct Count {
  int connected = 0, refused = 0, other = 0;
  void add(int status) { ++(status == 0 ? connected : status == -EACCES ? refused : other); }
};

bool seen_both(const Count& count) { return count.connected > 0 && count.refused > 0; }

// `swap` in a loop on a second thread while `act` runs in a loop on this one, until it is enough. "both" when the swaps were seen
// from both sides.
template <class Swap, class Act, class Enough = bool (*)(const Count&)>
std::string race(Swap swap, Act act, Enough enough = seen_both) {
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) swap();
  });
  Count count;
  const auto begun = std::chrono::steady_clock::now();
  const auto goes_on = [&](auto time) { return std::chrono::steady_clock::now() - begun < time; };
  while (goes_on(kTime) || (!enough(count) && goes_on(std::chrono::seconds(60)))) count.add(act());
  stop = true;
  other.join();
  if (seen_both(count)) return "both";
  return format("connected {} refused {} other {}", count.connected, count.refused, count.other);
}

std::string first_word(const std::string& text) { return text.substr(0, text.find('\n')); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

TEST_P(Attack, AddressSwappedInMemoryNeverReachesTheHost) {
  const UniqueFd server = host_service(dir / "host", SOCK_STREAM | SOCK_NONBLOCK);
  const std::string text = run_inside(setting(), [&] {
    const OwnServer own(dir / "mine");
    const sockaddr_un mine = address_of(dir / "mine"), host = address_of(dir / "host");
    static sockaddr_un shared;
    shared = mine;
    bool flip = false;
    const auto swap = [&] {
      flip = !flip;
      // Four bytes, one store: every read is one name or the other.
      const std::size_t at = offsetof(sockaddr_un, sun_path) + (dir / "").size();
      std::uint32_t name = 0;
      std::memcpy(&name, reinterpret_cast<const char*>(flip ? &host : &mine) + at, sizeof name);
      std::memcpy(reinterpret_cast<char*>(&shared) + at, &name, sizeof name);
    };
    const auto act = [&] {
      const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      return connect(socket.get(), reinterpret_cast<const sockaddr*>(&shared), sizeof shared) == 0 ? 0 : -errno;
    };
    return race(swap, act) + "\n";
  });
  EXPECT_EQ(first_word(text), "both");
  EXPECT_FALSE(was_touched(server));
}

TEST_P(Attack, DescriptorSwappedByDup2NeverReachesTheHost) {
  const UniqueFd server = host_service(dir / "host", SOCK_STREAM | SOCK_NONBLOCK);
  const std::string text = run_inside(setting(), [&] {
    const auto swap = [] {
      const UniqueFd inet(::socket(AF_INET, SOCK_STREAM, 0)), unix_socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      dup2(inet.get(), 200);
      dup2(unix_socket.get(), 200);
    };
    int inet = 0, unix_count = 0;
    const auto act = [&] {
      const int status = connect_to(200, dir / "host");
      ++(status == -EAFNOSUPPORT ? inet : unix_count);
      return status;
    };
    const std::string result = race(swap, act, [&](const Count&) { return inet > 0 && unix_count > 0; });
    return format("{} {} {}\n", result.find("connected 0 ") == 0, inet > 0, unix_count > 0);
  });
  EXPECT_EQ(first_word(text), "true true true");
  EXPECT_FALSE(was_touched(server));
}

TEST_P(Attack, LinkSwappedNeverReachesTheHost) {
  const UniqueFd server = host_service(dir / "host", SOCK_STREAM | SOCK_NONBLOCK);
  const std::string text = run_inside(setting(), [&] {
    const OwnServer own(dir / "mine");
    must(symlink("mine", (dir / "a").c_str()));
    must(symlink("host", (dir / "b").c_str()));
    const auto swap = [&] {
      syscall(SYS_renameat2, AT_FDCWD, (dir / "a").c_str(), AT_FDCWD, (dir / "b").c_str(), RENAME_EXCHANGE);
    };
    const auto act = [&] {
      const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      return connect_to(socket.get(), dir / "a");
    };
    return race(swap, act) + "\n";
  });
  EXPECT_EQ(first_word(text), "both");
  EXPECT_FALSE(was_touched(server));
}

TEST_P(Attack, SocketsExchangedNeverReachTheHost) {
  const UniqueFd server = host_service(dir / "host", SOCK_STREAM | SOCK_NONBLOCK);
  const std::string text = run_inside(setting(), [&] {
    const OwnServer own(dir / "mine");
    const auto swap = [&] {
      syscall(SYS_renameat2, AT_FDCWD, (dir / "mine").c_str(), AT_FDCWD, (dir / "host").c_str(), RENAME_EXCHANGE);
    };
    const auto act = [&] {
      const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      return connect_to(socket.get(), dir / "mine");
    };
    return race(swap, act) + "\n";
  });
  EXPECT_EQ(first_word(text), "both");
  EXPECT_FALSE(was_touched(server));
}

// listen is continued, so this is the one place where what runs may differ from what was looked at.
TEST_P(Attack, DescriptorSwappedDuringListenNeverMakesAHostSocketOwn) {
  const UniqueFd server = host_service(dir / "host", SOCK_STREAM | SOCK_NONBLOCK);
  const UniqueFd client = connected(dir / "host");
  const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  const std::string text = run_inside(setting(), [&] {
    const UniqueFd mine = bind_at(dir / "mine");
    const auto swap = [&] {
      dup2(accepted.get(), 200);
      dup2(mine.get(), 200);
    };
    const auto act = [&] {
      listen(200, 0);
      const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      return connect_to(socket.get(), dir / "host");
    };
    const std::string result = race(swap, act, [](const Count&) { return true; });
    return format("{} {}\n", result.find("connected 0 ") == 0, result.ends_with("other 0"));
  });
  EXPECT_EQ(first_word(text), "true true");
  EXPECT_FALSE(was_touched(server));
}

// The broker looks at nothing that says "this will not block", so nothing can lie to it.
TEST_P(Attack, BlockingModeFlippedNeverHoldsTheEventLoop) {
  Setting ends = setting();
  const auto start = std::chrono::steady_clock::now();
  ends.end_when = [&] { return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(1500); };
  run_inside(ends, [&] {
    const UniqueFd server = listen_at(dir / "full", SOCK_STREAM, 0);
    const UniqueFd first = connected(dir / "full");
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    const auto swap = [&] {
      fcntl(socket.get(), F_SETFL, O_NONBLOCK);
      fcntl(socket.get(), F_SETFL, 0);
    };
    return race(swap, [&] { return connect_to(socket.get(), dir / "full"); });
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(200)) << "a guard against waiting for ever";
}

}  // namespace
}  // namespace belljar::test
