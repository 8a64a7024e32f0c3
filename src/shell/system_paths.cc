// Which words name the system, a whole home or the whole workspace, by their spelling.
//
// No file is looked at: the text may be judged on a machine or at a time where the file is not there, and a
// link inside the workspace would otherwise decide about the answer. So a symbolic link that leads to /etc is
// not seen here; the sandbox sees it. `.` and `..` are taken out by their text alone, as `cd -L` does it.
//
// Of a word that is not fixed the certain front counts. If the front lies in a system directory, the word
// does, whatever follows; if it is a beginning of one (`/e`, then a pattern), it may. A variable behind an
// absolute front may hold `..`, so then every directory is possible. A word that stays relative is none of
// the system's, since where the shell is was put in front of it before (resolved_word).
#include "shell/system_paths.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "shell/script.h"

namespace belljar::shell {
namespace {

constexpr std::string_view kRoots[] = {"/bin",   "/boot", "/dev",  "/etc",          "/home",    "/lib",    "/lib32",
                                       "/lib64", "/opt",  "/proc", "/root",         "/run",     "/sbin",   "/srv",
                                       "/sys",   "/usr",  "/var",  "/Applications", "/Library", "/System", "/Users"};
constexpr std::string_view kSystem[] = {"/bin",   "/boot", "/dev",  "/etc", "/lib", "/lib32",
                                        "/lib64", "/proc", "/sbin", "/sys", "/usr"};
constexpr std::string_view kHarmlessDevices[] = {"/dev/null",   "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout",
                                                 "/dev/stderr", "/dev/tty",  "/dev/fd",   "/dev/shm"};

// A component that is `..`, or a pattern that may be.
bool has_dots(std::string_view path) noexcept {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part == "..") return true;
    if (part.find_first_of("*?[{}") == std::string_view::npos) continue;
    if (part[0] == '.' || part[0] == '[' || part.find("..") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string normal_path(std::string_view path) {
  if (path.empty()) return {};
  // proc_pid_root(5): other names of `/` and of the directory a command is called in.
  for (const std::string_view root : {"/proc/self/root", "/proc/thread-self/root", "/proc/1/root"}) {
    if (is_below(path, root)) return normal_path("/" + std::string(path.substr(root.size())));
  }
  for (const std::string_view here : {"/proc/self/cwd", "/proc/thread-self/cwd"}) {
    if (is_below(path, here)) return normal_path("." + std::string(path.substr(here.size())));
  }
  std::vector<std::string_view> parts;
  const bool home = path[0] == '~', relative = !home && path[0] != '/';
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    at = slash + 1;
    if (part.empty() || part == ".") continue;
    if (part != ".." || (relative && (parts.empty() || parts.back() == ".."))) parts.push_back(part);
    else if (!parts.empty() && !(home && parts.size() == 1)) parts.pop_back();
  }
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 || (!relative && !home)) result += '/';
    result += parts[i];
  }
  return !result.empty() ? result : relative ? "." : "/";
}

bool is_own_tree(std::string_view text) {
  const std::string path = normal_path(text);
  // An absolute one is some repository's, perhaps this one's.
  return path == "." || path == ".." || path.ends_with("/..") || path == ".git" || (path[0] == '/' && path.ends_with("/.git"));
}

bool is_below(std::string_view path, std::string_view directory) noexcept {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

Word resolved_word(const SimpleCommand& part, const Word& word) {
  const bool relative = word.fixed || word.bounded || word.lead > 0 || (word.pattern && !word.expands);
  // `{out,/etc/passwd}`: one of them may be absolute. In a directory of the system none of them matters more.
  const bool list = !word.fixed && word.text.starts_with('{') && word.text.find_first_of("/~") != std::string::npos;
  const bool begins_elsewhere = word.text.starts_with('/') || word.text.starts_with('~') || (word.fixed && word.text.empty()) ||
                                (list && !is_system(part.directory));
  if (part.directory.empty() || !relative || begins_elsewhere || is_process(word)) return word;
  Word result = word;
  result.text.insert(0, part.directory + "/");
  result.lead += part.directory.size() + 1;
  return result;
}

bool is_vital(std::string_view text) {
  if (text.empty()) return false;  // `rm -rf ''` removes nothing
  std::string path = normal_path(text);
  while (path.ends_with("/*") || path.ends_with("/.*")) path.resize(path.rfind('/'));
  if (path.empty() || path == "/") return true;
  if (path[0] == '~') return path.find('/') == std::string::npos;
  if (std::ranges::find(kRoots, path) != std::end(kRoots)) return true;
  const bool below_homes = path.starts_with("/home/") || path.starts_with("/Users/");
  return below_homes && std::ranges::count(path, '/') == 2;
}

bool is_system(std::string_view text) {
  const std::string path = normal_path(text);
  if (std::ranges::any_of(kHarmlessDevices, [&](std::string_view device) { return is_below(path, device); })) return false;
  if (is_below(path, "/usr/local")) return false;
  return std::ranges::any_of(kSystem, [&](std::string_view directory) { return is_below(path, directory); });
}

// Of what is not fixed the front counts. A name that stays relative is none of the system's, as one that is fixed; behind an
// absolute front a variable may hold `..`.
Reach reaches_system(const Word& word, bool one_word) {
  if (is_process(word)) return Reach::kNo;
  if (word.fixed) return is_system(word.text) ? Reach::kYes : Reach::kNo;
  const std::size_t open = word.pattern ? word.text.find_first_of("*?[{") : std::string::npos;
  const std::string front = word.text.substr(0, std::min(open, word.lead));
  if (!one_word && word.expands && word.splits && !word.bounded) return Reach::kMaybe;
  if (front.empty()) {
    const bool relative = word.bounded && (word.text.empty() || word.text[0] != '{' || word.text.find('/') == std::string::npos);
    return relative ? Reach::kNo : Reach::kMaybe;
  }
  if (front[0] != '/' && front[0] != '~') return Reach::kNo;
  const auto may_become = [&](std::string_view path) { return path.starts_with(front); };
  const bool may_be_harmless = may_become("/usr/local") || std::ranges::any_of(kHarmlessDevices, may_become);
  if (is_system(front)) return may_be_harmless ? Reach::kMaybe : Reach::kYes;
  const bool another_home = front[0] == '~' && front.size() > 1 && front[1] != '/';  // ~sys is /dev
  const bool leaves = !word.bounded || has_dots(word.text) || another_home;
  return leaves || std::ranges::any_of(kSystem, may_become) ? Reach::kMaybe : Reach::kNo;
}

}  // namespace belljar::shell
