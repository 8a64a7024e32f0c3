#include "backend/container/inside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "backend/container/spec.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

// The assembler reads the file that the build made: no array of a million numbers to compile.
asm(R"(
  .section .rodata.belljar_inside, "a"
  .balign 16
  .globl belljar_inside_begin
belljar_inside_begin:
  .incbin ")" BELLJAR_INSIDE R"("
  .globl belljar_inside_end
belljar_inside_end:
  .previous
)");

extern "C" const char belljar_inside_begin[], belljar_inside_end[];

namespace belljar::backend::container {
namespace {

Error unwritable(const std::string& path, int errnum, const char* call) {
  return Error(errnum == ENOSPC || errnum == EDQUOT ? Code::kResourceExhausted : Code::kFailedPrecondition,
               format("cannot write {}, which containers need", belljar::quoted(path)))
      .sys(errnum, call)
      .next("free space there, or set XDG_STATE_HOME to a directory that you and the engine can reach");
}

// As it should be: a regular file of ours with this content and mode.
bool is_right(const std::string& path, std::string_view content, mode_t mode) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 07777) != mode || static_cast<std::size_t>(status.st_size) != content.size())
    return false;
  if (content.empty()) return true;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string text(content.size(), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return text == content;
}

Result<void> write_file(const std::string& path, std::string_view content, mode_t mode) {
  if (is_right(path, content, mode)) return {};
  std::string other = path + ".XXXXXX";
  UniqueFd file(::mkostemp(other.data(), O_CLOEXEC));
  if (!file.valid()) return unwritable(path, errno, "mkostemp");
  const auto failed = [&](const char* call) {
    const int errnum = errno;
    ::unlink(other.c_str());
    return unwritable(path, errnum, call);
  };
  for (std::string_view rest = content; !rest.empty();) {
    const ssize_t wrote = ::write(file.get(), rest.data(), rest.size());
    if (wrote < 0 && errno != EINTR) return failed("write");
    if (wrote > 0) rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::fchmod(file.get(), mode) != 0) return failed("fchmod");
  file.reset();  // an open one could not be executed, execve(2) ETXTBSY
  if (::rename(other.c_str(), path.c_str()) != 0) return failed("rename");
  return {};
}

}  // namespace

std::string_view inside_program() noexcept {
  return {belljar_inside_begin, static_cast<std::size_t>(belljar_inside_end - belljar_inside_begin)};
}

Result<InstalledFiles> install_inside(const std::string& directory) {
  if (directory.empty())
    return Error(Code::kFailedPrecondition, "there is no place for what containers need")
        .reason("neither XDG_STATE_HOME nor a home is known")
        .next("set XDG_STATE_HOME");
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return unwritable(directory, failed.value(), "mkdir");
  // Without links: what is mounted is compared with these paths.
  const std::string real = std::filesystem::canonical(directory, failed).native();
  if (failed) return unwritable(directory, failed.value(), "realpath");
  InstalledFiles installed{real + "/inside", real + "/closed", real + "/closed.d", real + "/resolv.conf", real};
  BELLJAR_CHECK(write_file(installed.program, inside_program(), 0555));
  BELLJAR_CHECK(write_file(installed.closed_file, "", 0));
  BELLJAR_CHECK(write_file(installed.resolv_conf, "nameserver 127.0.0.53\n", 0444));
  if (::mkdir(installed.closed_dir.c_str(), 0) != 0 && errno != EEXIST) return unwritable(installed.closed_dir, errno, "mkdir");
  return installed;
}

}  // namespace belljar::backend::container
