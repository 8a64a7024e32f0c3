// The thread that waits for an answer, seen from outside: its memory, descriptors, root and working directory.
//
// Everything here is by number, and numbers are reused: what was read counts only if still_waiting() says afterwards that the
// notification lives. Ask for ptrace access to the caller: root, or the owner of the caller's user namespace in its parent; under
// yama's ptrace_scope 3 nobody has it, and every brokered call then fails (closed).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "broker/or_errno.h"

namespace belljar::broker {

class Caller {
 public:
  explicit Caller(pid_t tid) noexcept : tid_(tid) {}

  // A duplicate of the caller's descriptor: the same open file, which the caller can no longer exchange under us. EBADF as for it.
  OrErrno<UniqueFd> duplicate(int fd);
  // Fills `buffer` from the caller's memory. EFAULT when any of it cannot be read.
  OrErrno<void> read(std::uint64_t address, std::span<std::byte> buffer) const;
  // All of its memory, O_RDWR; good for as long as it runs this program.
  OrErrno<UniqueFd> open_memory() const;
  // The string at `address` as the kernel takes a path: EFAULT, ENAMETOOLONG; may be empty.
  OrErrno<std::string> read_path(std::uint64_t address) const;
  // Two of them, for the price of one where they are short.
  struct Paths {
    OrErrno<std::string> first, second;
  };
  Paths read_paths(std::uint64_t first, std::uint64_t second) const;
  OrErrno<UniqueFd> open_root() const;
  OrErrno<UniqueFd> open_cwd() const;
  // The working directory as a path below the caller's root; empty when unknown.
  std::string cwd_path() const;

  std::string program() const;  // comm
  int pid_inside() const;       // in the innermost pid namespace; 0 when unknown
  struct Ids {
    int tgid = 0, tid = 0;  // in the innermost pid namespace; 0 when unknown
    pid_t process = 0;      // the thread group, in ours
  };
  Ids ids_inside() const;
  // One of our user ids, or group ids, as its user namespace has it; the overflow id where that has none.
  uid_t uid_inside(uid_t ours) const { return id_inside("uid_map", ours); }
  gid_t gid_inside(gid_t ours) const { return id_inside("gid_map", ours); }
  // 022 when the caller is gone.
  mode_t umask() const;
  // Tells tasks of the same number apart; 0 when the caller is gone.
  ino_t identity() const;
  // The controlling terminal; 0 when there is none.
  dev_t terminal() const;
  // The program that it runs, O_PATH.
  OrErrno<UniqueFd> open_program() const;
  // RLIMIT_FSIZE, RLIMIT_NOFILE: the soft ones
  std::uint64_t file_size_limit() const;
  std::uint64_t open_files_limit() const;
  void signal(int number) const;
  pid_t tid() const { return tid_; }
  // A signal that the caller would handle waits behind the call.
  bool has_pending_signal() const;
  // The signal is neither caught, ignored nor blocked.
  bool dies_of(int signal) const;

 private:
  OrErrno<int> pidfd();
  std::uint64_t limit(const char* name, int resource) const;
  std::uint32_t id_inside(const char* map, std::uint32_t ours) const;

  pid_t tid_;
  UniqueFd pidfd_;
};

// Which thread traces the process (or thread) whose directory on a /proc that is, numbered as there; 0: none.
int tracer_of(int process_dir);

// Into what open_memory() gave. False: not all of it can be written.
bool write_memory(int memory, std::uint64_t address, std::span<const std::byte> bytes);

}  // namespace belljar::broker
