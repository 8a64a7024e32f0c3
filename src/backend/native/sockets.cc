#include "backend/native/sockets.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/error.h"
#include "broker/listed_sockets.h"
#include "policy/paths.h"

namespace belljar::backend {
namespace {

Error cannot_open(Code code, const std::string& path) { return Error(code, format("cannot open the socket {}", quoted(path))); }

// As far as it exists.
std::string real_path(const Host& host, const std::string& path) {
  if (auto real = host.canonical(path)) return *std::move(real);
  const auto above = host.canonical(parent_of(path));
  return above ? (*above == "/" ? "" : *above) + path.substr(path.rfind('/')) : path;
}

bool is_below_any(const std::string& path, const std::vector<std::string>& roots) {
  return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) { return is_under(path, root); });
}

// A sentence about what is as good as the user or root, or nothing.
std::string warn_of_socket(const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"docker.sock", "whoever controls docker is root on this machine"},
      {"podman.sock", "it starts containers with any mount, as the user or as root"},
      {"containerd.sock", "whoever controls containerd is root on this machine"},
      {"crio.sock", "whoever controls CRI-O is root on this machine"},
      {"buildkitd.sock", "it runs builds with the daemon's rights"},
      {"libvirt-sock", "it starts machines with any disk"},
      {"system_bus_socket", "it asks services of the system, systemd among them, in the user's name"},
      {"bus", "it starts programs outside of the sandbox (systemd --user)"},
      {"private", "it is systemd's own: it starts programs outside of the sandbox"},
      {"agent", "it signs with the user's keys"},
      {"gpg-agent", "it signs and decrypts with the user's keys"},
      {"ssh-agent", "it signs with the user's keys"},
      {"tmux", "it types into the user's terminals"},
      {"wayland", "it sees and drives the user's screen, as far as the compositor lets a client"},
      {"X0", "it sees and types into every window"},
  };
  const std::string_view name = file_name(path);
  for (const auto& [known, risk] : kKnown) {
    const bool whole = known == "bus" || known == "private";
    if (whole ? name == known : name.find(known) != std::string_view::npos)
      return format("{} is open to the command: {}", quoted(path), risk);
  }
  return "";
}

}  // namespace

Result<std::vector<broker::ListedSocket>> list_sockets(const Host& host, const Policy& policy,
                                                       const std::vector<std::string>& writable) {
  std::vector<broker::ListedSocket> listed;
  if (policy.network.allow_all_unix_sockets) return listed;
  for (const std::string& path : policy.network.allow_unix_sockets) {
    broker::ListedSocket socket{.path = policy::normal(path), .real = real_path(host, policy::normal(path)), .pinned = false};
    socket.pinned = is_below_any(socket.path, writable) || is_below_any(socket.real, writable);
    const PathFacts facts = host.facts(socket.real);
    if (facts.kind == PathKind::kAbsent && socket.pinned)
      return cannot_open(Code::kInvalidArgument, path)
          .reason(
              "it does not exist yet, in a directory that the command may write to: it could put a link to any other socket there")
          .next("start its server first, or drop the entry: sockets that the command makes itself need none");
    if (facts.kind != PathKind::kAbsent && !S_ISSOCK(facts.mode))
      return cannot_open(Code::kInvalidArgument, path).reason("it is not a socket").next("name the socket itself");
    if (facts.kind != PathKind::kAbsent && broker::is_datagram_socket(socket.real.c_str()))
      return cannot_open(Code::kUnimplemented, path)
          .reason("it is a datagram socket, and a command that has those may name any other in each message")
          .next("use network.allow_all_unix_sockets, or drop the entry");
    listed.push_back(std::move(socket));
  }
  return listed;
}

void warn_of_sockets(const std::vector<broker::ListedSocket>& sockets, std::vector<std::string>& warnings) {
  for (const broker::ListedSocket& socket : sockets) {
    if (std::string warning = warn_of_socket(socket.path); !warning.empty()) warnings.push_back(std::move(warning));
  }
}

}  // namespace belljar::backend
