// execve(2) gives one errno for many causes: ENOENT for a missing program, a missing interpreter of
// a script and a missing loader; ENOEXEC for any file that is no program. The file is read as the
// host sees it, after the fact, to tell them apart. That is a guess by design: it explains, and
// decides nothing. 126 and 127 are the shell's exit codes for "found and not executable" and "not
// found" (POSIX.1-2017, XCU 2.8.2).
#include "runtime/start_failure.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/unique_fd.h"

namespace belljar::runtime {
namespace {

// The first bytes of the file as the host sees it: enough for an ELF header or a `#!` line (the kernel reads 256, BINPRM_BUF_SIZE).
struct Head {
  bool exists = false, directory = false, readable = false;
  std::array<char, 256> bytes{};
  std::size_t size = 0;
  std::string_view text() const noexcept { return {bytes.data(), size}; }
};

Head read_head(const std::string& path) {
  Head head;
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return head;
  head.exists = true;
  head.directory = S_ISDIR(status.st_mode);
  if (!S_ISREG(status.st_mode)) return head;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t got = file.valid() ? read(file.get(), head.bytes.data(), head.bytes.size()) : -1;
  head.readable = got >= 0;
  if (got > 0) head.size = static_cast<std::size_t>(got);
  return head;
}

std::string interpreter(const Head& head) {
  std::string_view text = head.text();
  if (!text.starts_with("#!")) return {};
  text.remove_prefix(2);
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  return std::string(text.substr(0, text.find_first_of(" \t\n")));
}

// e_machine of a program that this machine runs itself; 0: of an architecture that nobody taught us.
#if defined(__x86_64__)
constexpr unsigned kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kThisMachine = EM_AARCH64;
#else
constexpr unsigned kThisMachine = EM_NONE;
#endif

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_386:
      return "32-bit x86";
    case EM_X86_64:
      return "x86-64";
    case EM_ARM:
      return "32-bit ARM";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "PowerPC 64";
    case EM_S390:
      return "s390";
    default:
      return format("machine type {}", machine);
  }
}

Error not_found(const std::string& program, const std::string& path) {
  const auto error = [&](std::string reason, std::string next) {
    return Error(Code::kNotFound, format("cannot run {}", quoted(program)))
        .reason(std::move(reason))
        .next(std::move(next))
        .exit_code(127);
  };
  if (path.empty() && program.find(' ') != std::string::npos)
    return error("there is no program of that whole name", "leave the quotes out, or give a shell text with -c");
  if (path.empty())
    return error("there is no such program in the PATH of the sandbox",
                 "check the name, or give the program's path; PATH comes from the policy's environment");
  const Head head = read_head(path);
  if (!head.exists) return error("there is no such file", "check the path");
  const std::string shebang = interpreter(head);
  if (shebang.ends_with('\r'))  // the kernel takes it for a part of the name
    return error(format("its interpreter {} is not there: the line ends as on Windows, with a carriage return", quoted(shebang)),
                 format("give it Unix line ends: sed -i 's/\\r$//' {}", escaped(program)));
  if (!shebang.empty())
    return error(format("its interpreter {} or the file itself is not there inside the sandbox", quoted(shebang)),
                 "install the interpreter, or allow reading both with --read");
  for (const std::string_view folder : {"/tmp/", "/var/tmp/"}) {
    if (path.starts_with(folder))
      return error(format("the sandbox has a {} of its own, without the host's files", folder.substr(0, folder.size() - 1)),
                   "show the file with --read, or put it in the workspace");
  }
  return error("the file, or the loader it asks for, is not there inside the sandbox", "allow reading it with --read");
}

Error not_executable(const std::string& program, std::string reason, std::string next) {
  return Error(Code::kPermissionDenied, format("cannot run {}", quoted(program)))
      .reason(std::move(reason))
      .next(std::move(next))
      .exit_code(126);
}

Error wrong_format(const std::string& program, const std::string& path) {
  const Head head = read_head(path);
  const std::string_view text = head.text();
  if (text.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    Elf32_Ehdr header{};  // e_machine is at the same place in both classes
    std::memcpy(&header, text.data(), std::min(text.size(), sizeof header));
    const bool complete = text.size() >= sizeof header;
    if (complete && header.e_type != ET_EXEC && header.e_type != ET_DYN)
      return not_executable(program, "it is an ELF file and no program: an object file, or a core dump",
                            "link it, or check the path");
    if (!complete || (header.e_machine == kThisMachine && header.e_ident[EI_CLASS] == ELFCLASS64))
      return not_executable(program, "it is an ELF program that is damaged or cut off", "copy or build it again");
    return not_executable(program,
                          format("it is an ELF program for {}, which this machine does not run", machine_name(header.e_machine)),
                          "build it for this machine");
  }
  if (head.readable && head.size == 0) return not_executable(program, "the file is empty", "check the path");
  return not_executable(program, "it is neither a program for this machine nor a script with a `#!` line",
                        format("for a shell script: belljar run -- sh {}", escaped(program)));
}

}  // namespace

Error explain_start_failure(int errnum, std::string_view call, const std::string& program, const std::string& cwd) {
  if (call == "chdir")
    return Error(Code::kFailedPrecondition, format("cannot enter the directory {}", quoted(cwd)))
        .sys(errnum, "chdir")
        .next("choose a directory that the command may enter with --cwd");
  if (call != "execve")
    return Error(errnum == EAGAIN ? Code::kResourceExhausted : Code::kInternal, format("cannot start {}", quoted(program)))
        .sys(errnum, std::string(call))
        .next(errnum == EAGAIN ? "raise the pids limit (--pids), or end other processes" : "see `belljar doctor`");
  std::string path;
  if (program.find('/') != std::string::npos) path = program.starts_with('/') ? program : cwd + "/" + program;
  switch (errnum) {
    case ENOENT:
    case ENOTDIR:
      return not_found(program, path);
    case ENOEXEC:
      return path.empty()
                 ? not_executable(program, "what PATH finds is neither a program for this machine nor a script with a `#!` line",
                                  "give the path of the right one")
                 : wrong_format(program, path);
    case EACCES:
      if (!path.empty() && read_head(path).directory) return not_executable(program, "it is a directory", "name a program in it");
      return not_executable(program,
                            "permission denied: no execute permission, a hidden path, or a file system without programs (noexec)",
                            "chmod +x it, or choose another program");
    case E2BIG:
      return not_executable(program, "its arguments and environment are larger than the system takes",
                            "pass the data through a file or stdin");
    case ENAMETOOLONG:
      return not_executable(program, "the path is longer than 4095 bytes, or one name in it than 255", "give a shorter path");
    default:
      return not_executable(program, std::strerror(errnum), "see execve(2)");
  }
}

}  // namespace belljar::runtime
