// Paths of a sandbox elsewhere are judged as text. There is no descriptor of a directory over there and no
// openat2(2), so a link inside the workspace that leads out of it is followed; the machine is a throwaway of
// its own, and nothing of this one is on it. The text is normalised first, so "a/../../x" is found out before
// anything is sent.
//
// complaint_of() reads the messages of coreutils, for lack of an errno. Helpers run in the C locale, so the
// words are known.
#include "remote/paths.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "policy/paths.h"

namespace belljar::remote {

Result<std::string> below(const std::string& workspace, const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot use path {}", belljar::quoted(path))).reason("it holds a NUL byte");
  if (path.size() > policy::kMaxPath)
    return Error(Code::kInvalidArgument, format("cannot use path {}", belljar::quoted(path.substr(0, 80) + "...")))
        .reason("it is too long");
  std::string full = policy::normal(path.starts_with('/') ? path : workspace + "/" + path);
  if (!policy::is_within(full, workspace))
    return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
        .next("name a path inside of the workspace");
  return full;
}

Result<std::string> named_below(const std::string& workspace, const std::string& path) {
  std::string full = BELLJAR_TRY(below(workspace, path));
  if (full != workspace) return full;
  return Error(Code::kInvalidArgument, format("cannot use {} here", belljar::quoted(path)))
      .reason("it is the workspace itself")
      .next("name what is in it");
}

Result<std::string> cwd_below(const std::string& workspace, const std::string& cwd) {
  if (cwd.empty()) return workspace;
  auto full = below(workspace, cwd);
  if (!full && full.error().what().starts_with("path escapes"))
    return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(cwd)))
        .next("name a directory inside of the workspace");
  return full;
}

Result<std::string> workspace_elsewhere(const std::string& asked, std::string_view usual) {
  const std::string workspace = asked.empty() ? std::string(usual) : asked;
  if (!workspace.starts_with('/') || workspace.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot use workspace {}", belljar::quoted(workspace)))
        .reason("it is a directory of the sandbox in the cloud, and not absolute")
        .next(format("name one there, or none: {}", usual));
  return policy::normal(workspace);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> check_mode(std::optional<unsigned> mode) {
  if (mode && (*mode & ~0777U) != 0)
    return Error(Code::kInvalidArgument, format("cannot set mode {:o}", *mode))
        .reason("setuid, setgid and sticky bits are never set from here")
        .next("give permission bits between 0000 and 0777");
  return {};
}

Error wrong_kind(std::string_view doing, const std::string& path, FileType type) {
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, belljar::quoted(path)))
      .reason(type == FileType::kDirectory ? "it is a directory" : "it is a FIFO, a device or a socket, not a file");
}

// What coreutils complain of: "cat: x: Permission denied".
Error complaint_of(const std::string& err, std::string_view doing, const std::string& path) {
  const auto says = [&](std::string_view text) { return err.find(text) != std::string::npos; };
  const Code code = says("Permission denied") || says("not permitted") || says("Read-only")  ? Code::kPermissionDenied
                    : says("File exists")                                                    ? Code::kAlreadyExists
                    : says("No such file")                                                   ? Code::kNotFound
                    : says("not empty") || says("Is a directory") || says("Not a directory") ? Code::kFailedPrecondition
                    : says("No space left") || says("quota")                                 ? Code::kResourceExhausted
                                                                                             : Code::kUnknown;
  std::string line = err.substr(0, std::min<std::size_t>(err.find('\n'), 300));
  return Error(code, format("cannot {} {}", doing, belljar::quoted(path))).reason(escaped(line));
}

}  // namespace belljar::remote
