#include "broker/refused_call.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/format.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_table.h"

namespace belljar::broker {
namespace {

std::string name_in(std::initializer_list<std::pair<std::uint32_t, const char*>> names, std::uint32_t value,
                    const char* otherwise) {
  for (const auto& [number, name] : names) {
    if (number == value) return name;
  }
  return format("{} {}", otherwise, value);
}

std::string socket_kind(const Call& call) {
  const auto family = static_cast<std::uint32_t>(call.args[0]), type = static_cast<std::uint32_t>(call.args[1]) & 0xfU;
  return name_in({{AF_UNIX, "AF_UNIX"},
                  {AF_INET, "AF_INET"},
                  {AF_INET6, "AF_INET6"},
                  {AF_NETLINK, "AF_NETLINK"},
                  {AF_PACKET, "AF_PACKET"},
                  {AF_ALG, "AF_ALG"},
                  {AF_VSOCK, "AF_VSOCK"},
                  {AF_BLUETOOTH, "AF_BLUETOOTH"},
                  {AF_CAN, "AF_CAN"},
                  {AF_XDP, "AF_XDP"},
                  {AF_TIPC, "AF_TIPC"},
                  {AF_KEY, "AF_KEY"}},
                 family, "family") +
         " " +
         name_in({{SOCK_STREAM, "SOCK_STREAM"},
                  {SOCK_DGRAM, "SOCK_DGRAM"},
                  {SOCK_RAW, "SOCK_RAW"},
                  {SOCK_SEQPACKET, "SOCK_SEQPACKET"},
                  {SOCK_PACKET, "SOCK_PACKET"}},
                 type, "type");
}

std::string namespaces_in(std::uint64_t flags) {
  constexpr std::pair<std::uint64_t, const char*> kSpaces[] = {{CLONE_NEWUSER, "CLONE_NEWUSER"},    {CLONE_NEWNS, "CLONE_NEWNS"},
                                                               {CLONE_NEWPID, "CLONE_NEWPID"},      {CLONE_NEWNET, "CLONE_NEWNET"},
                                                               {CLONE_NEWIPC, "CLONE_NEWIPC"},      {CLONE_NEWUTS, "CLONE_NEWUTS"},
                                                               {CLONE_NEWCGROUP, "CLONE_NEWCGROUP"}};
  std::string text;
  for (const auto& [flag, name] : kSpaces) {
    if ((flags & flag) != 0) text += std::string(" ") + name;
  }
  return text;
}

// The argument that made it a refusal, where there is one.
std::string detail_of(const Call& call) {
  switch (call.number) {
    case SYS_clone:
    case SYS_unshare:
      return namespaces_in(call.args[0]);
    case SYS_ioctl:
      return " " + name_in({{TIOCSTI, "TIOCSTI"}, {0x541c, "TIOCLINUX"}, {TIOCSETD, "TIOCSETD"}},
                           static_cast<std::uint32_t>(call.args[1]), "request");
    default:
      return "";
  }
}

bool permits(kernel::SeccompSpec spec, const Call& call, void (*relax)(kernel::SeccompSpec&)) {
  relax(spec);
  return kernel::refusal_of(spec, static_cast<std::uint32_t>(call.number), call.args).errnum == 0;
}

// The policy key that would open it, found by asking the model; "seccomp" when none does.
std::string rule_of(const kernel::SeccompSpec& filter, const Call& call) {
  if (permits(filter, call, [](kernel::SeccompSpec& spec) { spec.unix_sockets = kernel::UnixSockets::kAll; }))
    return "network.allow_all_unix_sockets";
  if (permits(filter, call, [](kernel::SeccompSpec& spec) { spec.allow_inet = true; })) return "network.mode";
  if (permits(filter, call, [](kernel::SeccompSpec& spec) { spec.allow_nested_userns = true; })) return "allow_nested_userns";
  return "seccomp";
}

// Only x32 has our numbers, with a bit more, and a few of its own.
std::string foreign_name(std::uint32_t arch, std::uint32_t number) {
  constexpr std::uint32_t kI386 = 0x40000003U, kX32Bit = 0x40000000U;
  if (arch == kI386) return format("number {} of i386", number);
  if (arch != kernel::kNativeArch) return format("number {} of architecture {:#x}", number, arch);
  const std::string_view name = kernel::call_name(number & ~kX32Bit);
  return name.empty() ? format("number {} of x32", number & ~kX32Bit) : format("{} of x32", name);
}

// 0: this filter does not refuse it.
int refuse_by(Context& context, const Call& call, const kernel::SeccompSpec& filter) {
  const kernel::CallRefusal refusal = kernel::refusal_of(filter, static_cast<std::uint32_t>(call.number), call.args);
  if (refusal.errnum == 0) return 0;
  CallName name = name_of(call);
  const bool datagrams =
      (call.number == SYS_socket || call.number == SYS_socketpair) && static_cast<std::uint32_t>(call.args[0]) == AF_UNIX;
  const Caller caller(call.tid);
  return context.refuse(caller, std::move(name.operation), std::move(name.target), refusal.errnum,
                        datagrams ? "stream and seqpacket: a datagram end can send to any path, which no filter sees"
                                  : format("no call of this kind: {}", refusal.why),
                        rule_of(filter, call));
}

}  // namespace

CallName name_of(const Call& call) {
  if (call.number == SYS_socket || call.number == SYS_socketpair) return {"socket", socket_kind(call)};
  const std::string_view name = kernel::call_name(static_cast<std::uint32_t>(call.number));
  return {"system-call", (name.empty() ? format("number {}", call.number) : std::string(name)) + detail_of(call)};
}

bool handle_foreign(Context& context, const Call& call) {
  const auto number = static_cast<std::uint32_t>(call.number);
  if (!kernel::is_foreign(call.arch, number)) return false;
  const Caller caller(call.tid);
  context.refuse(caller, "system-call", foreign_name(call.arch, number), 0,
                 "calls of this machine's own ABI: of another one the process is killed", "seccomp");
  // The filter's own end is a SIGSYS that nobody can catch.
  const int signal = caller.dies_of(SIGSYS) ? SIGSYS : SIGKILL;
  if (still_waiting(context.listener.get(), call.id)) ::syscall(SYS_tkill, call.tid, signal);
  answer(context.listener.get(), call.id, -ENOSYS);
  return true;
}

bool handle_refused(Context& context, const Call& call) {
  const int status = refuse_by(context, call, context.options.filter);
  if (status == 0) return false;
  answer(context.listener.get(), call.id, status);
  return true;
}

int refuse_as_filter(Context& context, const Call& call) {
  kernel::SeccompSpec alone = context.options.filter;
  alone.file_calls = kernel::FileCalls::kDirect;
  return refuse_by(context, call, alone);
}

}  // namespace belljar::broker
