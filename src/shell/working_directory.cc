// Where `cd` leads, and what is known where several ways meet.
//
// A relative path means another file in each directory, so `cd / && rm -rf *` has to be judged as if the path
// were written out. The directory is followed through `cd`, `pushd` and `popd` as far as their words are
// fixed. But a `cd` may fail, and a branch may not run; then the shell stands where it stood before. So
// beside the directory there is a list of other directories in which the next command may run.
//
// Only directories that a check cares about are in that list (matters): the system's own and those whose loss
// is a disaster. Everywhere else a relative path is harmless in the same way, and a list of all combinations
// would grow without end. For the same reason joined() prefers an ordinary directory as the known one and
// puts the others into the list: each of those is judged besides, the ordinary one only once.
#include "shell/working_directory.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shell/script.h"
#include "shell/system_paths.h"

namespace belljar::shell {

std::string directory_behind(const std::string& here, const Word& word) {
  const bool home = word.text == "~" || word.text.starts_with("~/");
  if (!word.fixed && !(home && word.bounded && !word.pattern && word.lead >= word.text.size())) return {};
  if (word.text.starts_with('/') || home) return normal_path(word.text);
  return here.empty() || word.text.empty() || word.text == "-" ? std::string() : normal_path(here + "/" + word.text);
}

namespace {

template <typename Skips>
std::span<const Word> words_behind(const SimpleCommand& command, Skips skips) noexcept {
  std::span<const Word> words = command.argv;
  while (!words.empty() && words[0].fixed && skips(words[0].text)) {
    words = words.subspan(1);
    while (!words.empty() && words[0].fixed && (words[0].text == "-p" || words[0].text == "--")) words = words.subspan(1);
  }
  return words;
}

std::span<const Word> words_of_cd(const SimpleCommand& command) noexcept {
  const std::span<const Word> words = words_here(command);
  const std::string_view name = words.empty() || !words[0].fixed ? std::string_view() : std::string_view(words[0].text);
  return name == "cd" || name == "pushd" || name == "popd" ? words : std::span<const Word>();
}

bool matters(std::string_view cwd) { return !cwd.empty() && (is_vital(cwd) || is_system(cwd)); }

}  // namespace

bool stays_here(std::string_view word) noexcept { return word == "command" || word == "builtin" || word == "time"; }
std::span<const Word> words_here(const SimpleCommand& command) noexcept { return words_behind(command, stays_here); }
std::span<const Word> words_called(const SimpleCommand& command) noexcept {
  return words_behind(command, [](std::string_view word) { return word == "time"; });
}

std::string directory_after(const SimpleCommand& command, const std::string& here) {
  const std::span<const Word> argv = words_of_cd(command);
  if (argv.empty()) return here;
  const std::string_view name = argv[0].text;
  std::vector<const Word*> words;
  for (const Word& word : argv.subspan(1)) {
    const bool option = word.fixed && word.text.size() > 1 && word.text[0] == '-';
    if (!option) words.push_back(&word);
    else if (word.text == "-n" && name != "cd") return here;  // only the list of pushd changes
  }
  if (words.empty()) return name == "cd" ? "~" : "";
  return name == "popd" || words.size() > 1 ? "" : directory_behind(here, *words[0]);
}

bool is_cd(const SimpleCommand& command) noexcept { return !words_of_cd(command).empty(); }

bool surely_exists(std::string_view directory) {
  return directory == "/" || directory == "~" || directory == "/tmp" || directory == "/var/tmp" || directory == "/usr/local" ||
         (is_vital(directory) && std::ranges::count(directory, '/') == 1);
}

void add_directories(std::vector<std::string>& directories, const std::vector<std::string>& more) {
  for (const std::string& cwd : more) {
    if (matters(cwd) && std::ranges::find(directories, cwd) == directories.end()) directories.push_back(cwd);
  }
}

std::vector<std::string> all_of(const WorkingDirectory& cwd) {
  std::vector<std::string> all{cwd.directory};
  all.insert(all.end(), cwd.possible_directories.begin(), cwd.possible_directories.end());
  return all;
}

// The directory is that of all, or one where little can be done; the rest are those where it may be instead.
WorkingDirectory joined(const std::vector<WorkingDirectory>& ends) {
  if (ends.empty()) return {};
  WorkingDirectory result = ends[0];
  for (const WorkingDirectory& end : ends) {
    if (end.directory == result.directory) continue;
    if (matters(result.directory) || result.directory.empty())
      result.directory = matters(end.directory) ? std::string() : end.directory;
  }
  for (const WorkingDirectory& end : ends) {
    add_directories(result.possible_directories, all_of(end));
    add_directories(result.failed, end.failed);
  }
  std::erase(result.possible_directories, result.directory);
  return result;
}

}  // namespace belljar::shell
