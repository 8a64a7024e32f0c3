// belljar setup: what `belljar doctor` advises, done by root: user namespaces for whoever runs belljar.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/paths/host.h"
#include "backend/probe.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/own_program.h"
#include "cli/recognise.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kMark = "# Written by `belljar setup`; `belljar setup --undo` takes it away.\n";

struct SetupFlags {
  bool dry_run = false, undo = false;
};

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The path of a program of the system's.
// Its exit code is ours. Returns only when it cannot be begun.
Result<void> exec_program(const std::string& program, const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  return Error(Code::kUnavailable, format("cannot run {}", belljar::quoted(program))).sys(errno, "execve");
}

// Whole or not at all.
Result<void> write_file(const std::string& path, const std::string& text) {
  const auto failed = [&](const char* call) {
    return Error(Code::kUnavailable, format("cannot write {}", belljar::quoted(path))).sys(errno, call);
  };
  const std::string fresh = path + ".new";
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return failed("open");
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fchmod(file.get(), 0644) != 0 ||
      ::fsync(file.get()) != 0 || ::rename(fresh.c_str(), path.c_str()) != 0) {
    auto error = failed("rename");
    ::unlink(fresh.c_str());
    return error;
  }
  return {};
}

Result<void> set(const std::string& path, const std::string& value) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
    return Error(Code::kUnavailable, format("cannot set {}", belljar::quoted(path))).sys(errno, "write");
  return {};
}

Result<void> check_root(std::string_view words) {
  if (::geteuid() == 0) return {};
  return Error(Code::kPermissionDenied, "cannot change what this machine lets its users do")
      .reason("that is for root to decide")
      .next(format("sudo {}{}", own_path(), words));
}

// A profile is for a name, and whoever can put a file there gets what it allows.
Result<void> check_place(const backend::Remedy& remedy) {
  if (remedy.command.empty()) return {};
  for (std::string path = own_path();; path.resize(std::max<std::size_t>(path.rfind('/'), 1))) {
    struct stat facts{};
    if (::stat(path.c_str(), &facts) != 0 || facts.st_uid != 0 || (facts.st_mode & 0022U) != 0)
      return Error(Code::kFailedPrecondition, format("others than root may write {}", belljar::quoted(path)))
          .reason("an AppArmor profile names a path: whoever can put a program there could use it")
          .next("install belljar where only root writes, as `sudo ./dev install` does, and run that one");
    if (path == "/") return {};
  }
}

Result<void> apply(const backend::Remedy& remedy) {
  const auto old = content_of(remedy.file);
  if (old && !old->starts_with(kMark))
    return Error(Code::kAlreadyExists, format("there is a {} that `belljar setup` did not write", belljar::quoted(remedy.file)))
        .next("put into it by hand what `belljar setup --dry-run` shows");
  BELLJAR_CHECK(check_place(remedy));
  // In a profile these are a pattern, or end the name.
  if (const std::string path = own_path(); !remedy.command.empty() && path.find_first_of("\"*?[]{}^\\@,#\n") != std::string::npos)
    return Error(Code::kInvalidArgument, format("the name {} means something else in an AppArmor profile", belljar::quoted(path)))
        .next("put belljar where the name has letters, digits, `.`, `-`, `_` and spaces only");
  std::string program;
  if (!remedy.command.empty()) {
    program = find_program(remedy.command[0], "/usr/sbin:/sbin:/usr/bin:/bin");
    if (program.empty())
      return Error(Code::kNotFound, format("there is no program {}", belljar::quoted(remedy.command[0])))
          .next("install it (package apparmor)");
  }
  BELLJAR_CHECK(write_file(remedy.file, std::string(kMark) + remedy.text));
  if (program.empty()) return set(remedy.setting, remedy.value);
  return exec_program(program, remedy.command);
}

std::string as_text(const backend::Advice& advice) {
  const backend::Remedy& remedy = *advice.remedy;
  std::string text = format("{}.\nSo as root this writes {}:\n\n{}{}\n", advice.cause, remedy.file, kMark, remedy.text);
  if (remedy.command.empty()) return text + format("and {} to {}.\n", remedy.value, remedy.setting);
  text += "and runs:";
  for (const std::string& word : remedy.command) text += " " + word;
  return text + "\n";
}

// Without a setting that stands in the way there is nothing to take for root; what else refuses user namespaces is told.
Result<void> set_up(const SetupFlags& flags) {
  const backend::Advice advice = backend::advise_userns(backend::read_userns_settings(), 0, own_path());
  if (!advice.remedy) {
    const backend::RealHost host;
    const backend::Probe probe = backend::probe_user_namespaces(host);
    if (!probe.works)
      return Error(Code::kFailedPrecondition, "user namespaces are refused here, and no setting of this machine does that")
          .reason(advice.cause)
          .next(advice.steps.front());
    std::printf("Nothing to set up: this machine lets its users make user namespaces.\n");
    return {};
  }
  std::fputs(as_text(advice).c_str(), stdout);
  if (!flags.dry_run) std::fputs("`belljar doctor` tells what holds afterwards.\n", stdout);
  std::fflush(stdout);
  if (flags.dry_run) return {};
  BELLJAR_CHECK(check_root(" setup"));
  return apply(*advice.remedy);
}

// All of them, whichever is there: what stood in the way once says nothing of what was done.
Result<void> undo(const SetupFlags& flags) {
  const backend::UsernsSettings kinds[] = {{"1", "0", ""}, {"0", "1", ""}, {"1", "1", "1"}};
  bool found = false;
  for (const backend::UsernsSettings& kind : kinds) {
    const backend::Remedy remedy = *backend::advise_userns(kind, 0, own_path()).remedy;
    const auto text = content_of(remedy.file);
    if (!text || !text->starts_with(kMark)) continue;
    found = true;
    std::printf("%s %s.\n", flags.dry_run ? "Would remove" : "Removing", remedy.file.c_str());
    if (flags.dry_run) continue;
    std::fflush(stdout);
    BELLJAR_CHECK(check_root(" setup --undo"));
    if (!remedy.command.empty()) (void)set("/sys/kernel/security/apparmor/.remove", "belljar");  // ENOENT: it was not loaded
    if (::unlink(remedy.file.c_str()) != 0)
      return Error(Code::kUnavailable, format("cannot remove {}", belljar::quoted(remedy.file))).sys(errno, "unlink");
    if (remedy.command.empty()) std::printf("What the kernel was told stays until the machine starts again.\n");
  }
  if (!found) std::printf("Nothing to undo.\n");
  return {};
}

}  // namespace

void add_setup(const OptionParser& app, int& exit_code) {
  const OptionParser command =
      app.add_subcommand("setup", "Let belljar make user namespaces where this machine refuses them. Needs root");
  const auto flags = std::make_shared<SetupFlags>();
  command.add_flag("--dry-run", flags->dry_run, "Show what it would write and run, and change nothing");
  command.add_flag("--undo", flags->undo, "Take away what an earlier `belljar setup` wrote");
  command.callback([flags, &exit_code] {
    const auto done = flags->undo ? undo(*flags) : set_up(*flags);
    exit_code = done ? 0 : print_error(done.error());
  });
}

}  // namespace belljar::cli
