// bind(2), where rules judge names or no port may be taken (local_ports.h). An AF_UNIX socket's name is one that git may take for a
// marker of a repository (it asks for access, not for the type) and that no call on files makes.
//
// A name that rules may have a say on is judged and made here, on a duplicate of the caller's socket, under its directory; the
// socket then bears the last component as its address (but see getsockname_call.cc). A name elsewhere keeps its spelling: the call
// goes on by itself where Landlock holds that it cannot end in a judged place after all (BrokerOptions::sockets_held), whatever the
// caller swaps. Everything that makes no name likewise.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "broker/control_files.h"
#include "broker/file_call.h"
#include "broker/handlers.h"
#include "broker/local_ports.h"
#include "broker/socket_args.h"
#include "kernel/seccomp.h"

namespace belljar::broker {
namespace {

struct Bind {
  FileCall file;
  SocketArgs args;
  StartDir start;
};

bool is_unix(int socket) { return socket_option(socket, SO_DOMAIN) == AF_UNIX; }

int bind_to(int socket, const void* address, socklen_t length) {
  return ::bind(socket, static_cast<const sockaddr*>(address), length) == 0 ? 0 : -errno;
}

// The name under that directory and no other: this thread's working directory is its own.
int bind_name(const Bind& bind, const DirEntry& entry) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (entry.name.size() > sizeof name.sun_path) return -EINVAL;
  std::memcpy(name.sun_path, entry.name.data(), entry.name.size());
  if (::fchdir(entry.dir) != 0) return -errno;
  const int status =
      bind_to(bind.args.socket.get(), &name, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + entry.name.size()));
  if (::chdir("/") != 0) return -errno;
  return status;
}

// For getsockname_call.cc.
void note_name(const Bind& bind, const std::string& path) {
  struct stat socket{};
  if (path.find('/') != std::string::npos && ::fstat(bind.args.socket.get(), &socket) == 0)
    bind.file.context.bound.note(socket.st_ino, path);
}

int bind_path(Bind& bind, const std::string& path) {
  FileCall& file = bind.file;
  if (const int status = file.open_start(static_cast<std::uint64_t>(AT_FDCWD), path, bind.start); status != 0) return status;
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.own_directories(); status != 0) return status;
  auto entry = file.resolver().parent(bind.start.fd.get(), path);
  if (!entry) return file.explain_way(Act::kMknod, bind.start.fd.get(), path, PathResolver::Last::kStay, -entry.error());
  if (!entry->is_name()) return -EADDRINUSE;
  const Ruling ruling = file.rule(Act::kMknod, *entry, false);
  if (ruling.answer == Answer::kAllow && file.context.options.sockets_held && !file.judges(*entry)) return kGoOn;
  if (exists_at(entry->dir, std::string(entry->bare()))) return -EADDRINUSE;
  if (ruling.answer == Answer::kMakesGitDir) {
    if (const int status = admit_git_dir(file, Act::kMknod, *entry, ruling); status != 0) return status;
  } else if (ruling.answer != Answer::kAllow) {
    return file.refuse(Act::kMknod, entry->path(), ruling);
  }
  file.adopt_umask();
  const int status = bind_name(bind, *entry);
  if (status == 0) note_name(bind, path);
  return file.explain(Act::kMknod, *entry, status);
}

int perform(Bind& bind) {
  Context& context = bind.file.context;
  const bool judges_names = context.options.filter.file_calls != kernel::FileCalls::kDirect;
  // A caller that lets nobody look (PR_SET_DUMPABLE, without namespaces) binds what it may where it is about ports alone: its
  // listen is what is refused.
  if (const int status = read_socket_args(bind.file.caller, bind.file.call, bind.args); status != 0)
    return judges_names ? status : kGoOn;
  if (context.options.ports_refused && takes_port(bind.args.socket.get()))
    return refuse_port(context, bind.file.caller, "bind", bind.args.address);
  if (!judges_names) return kGoOn;
  const UnixName name = is_unix(bind.args.socket.get()) ? decode_unix(bind.args.address) : UnixName{};
  if (name.kind == UnixName::Kind::kPath) return bind_path(bind, std::string(name.name));
  if (context.options.sockets_held) return kGoOn;
  if (const int status = bind.file.begin(); status != 0) return status;
  return bind_to(bind.args.socket.get(), bind.args.address.bytes.data(), bind.args.address.length);
}

}  // namespace

void handle_bind(Context& context, const Call& call, Receivers::Slot& slot) {
  int status = 0;
  {
    Bind bind{.file = FileCall(context, call, slot), .args = {}, .start = {}};
    status = perform(bind);
  }
  if (status == kGoOn) return let_continue(context.listener.get(), call.id);
  answer(context.listener.get(), call.id, status);
}

}  // namespace belljar::broker
