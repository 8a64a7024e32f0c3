// glob and grep: one walk below the workspace, directory by directory through descriptors, no link followed.
//
// Each directory is opened relative to its parent's descriptor with O_NOFOLLOW, so a directory that is replaced
// by a link during the walk is skipped and not followed. The price is one descriptor per level, which bounds
// the depth. What is too deep, or did not fit into the descriptors, the time or the number of results, makes
// the result incomplete and never an error: the caller gets what there is.
//
// The files are sorted at the end, since readdir(3) has no order. grep looks at whole lines. A line longer than
// a megabyte is searched in pieces that overlap by at least the length of the text, so memory is bounded and no
// match is lost at a seam.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>

#include "base/ascii.h"
#include "base/format.h"
#include "base/patience.h"
#include "policy/paths.h"
#include "session/act_as.h"
#include "session/files.h"

namespace belljar::session {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDeepest = 200;  // directories within each other; a descriptor each
constexpr std::size_t kLongestLine = 1000;
constexpr std::size_t kBlock = 64U << 10;

class Walk {
 public:
  // `enter`: whether the policy lets the names in that directory be read.
  using Enter = std::function<bool(const std::string& path)>;
  Walk(const WalkOptions& options, Enter enter)
      : options_(options), enter_(std::move(enter)), end_(Clock::now() + bounded(options.timeout)) {}

  bool complete() const noexcept { return complete_; }
  bool stopped() {
    if (complete_ && (options_.cancel.cancelled() || Clock::now() >= end_)) complete_ = false;
    return !complete_;
  }
  bool full(std::size_t results) {
    if (results >= options_.max_results) complete_ = false;
    return !complete_;
  }

  // `visit` gets the directory and the entry with its path below the top.
  using Visit = std::function<void(int directory, const std::string& name, FileInfo info)>;
  void below(UniqueFd directory, const std::string& prefix, const Visit& visit, std::size_t depth = 0) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
    if (stream == nullptr) return;
    const int fd = directory.release();
    while (const dirent* entry = ::readdir(stream.get())) {
      if (stopped()) return;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      auto info = describe(fd, name);
      if (!info) continue;
      info->path = prefix + name;
      const bool directory_here = info->type == FileType::kDirectory;
      visit(fd, name, *std::move(info));
      if (!directory_here || (!enter_(prefix + name))) continue;
      UniqueFd next(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (depth == kDeepest || (!next.valid() && errno == EMFILE)) complete_ = false;
      else if (next.valid()) below(std::move(next), prefix + name + "/", visit, depth + 1);
    }
  }

 private:
  const WalkOptions& options_;
  Enter enter_;
  Clock::time_point end_;
  bool complete_ = true;
};

// The lines of one file that hold the text. Reads a block at a time: a file without line ends costs no more memory than another.
class LineSearch {
 public:
  LineSearch(std::string text, Case letters) : text_(std::move(text)), fold_(letters == Case::kIgnoreAscii) {
    if (fold_) text_ = lower_case(text_);
  }

  // `found` says whether to go on.
  void search(int fd, const std::function<bool(std::uint64_t line, std::string text)>& found) const {
    std::string pending, beginning;  // of a line whose beginning is not pending any more
    bool hit = false;                // what went of it held the text
    std::array<char, kBlock> block;
    std::uint64_t line = 1;
    ssize_t got = 0;
    while ((got = ::read(fd, block.data(), block.size())) > 0) {
      pending.append(block.data(), static_cast<std::size_t>(got));
      std::size_t start = 0;
      for (std::size_t end; (end = pending.find('\n', start)) != std::string::npos; start = end + 1, ++line) {
        const std::string_view here = std::string_view(pending).substr(start, end - start);
        if ((hit || holds(here)) && !found(line, beginning.empty() ? std::string(here.substr(0, kLongestLine)) : beginning)) return;
        beginning.clear();
        hit = false;
      }
      pending.erase(0, start);
      // A "line" that long is no text; what is kept still finds a match that lies across two blocks.
      if (pending.size() <= (1U << 20)) continue;
      if (beginning.empty()) beginning = pending.substr(0, kLongestLine);
      hit = hit || holds(pending);
      pending.erase(0, pending.size() - std::max(text_.size(), kLongestLine));
    }
    if (!pending.empty() && (hit || holds(pending))) found(line, beginning.empty() ? pending.substr(0, kLongestLine) : beginning);
  }

 private:
  bool holds(std::string_view line) const {
    if (!fold_) return line.find(text_) != std::string_view::npos;
    return std::ranges::search(line, text_, {}, to_lower).begin() != line.end();
  }

  std::string text_;
  bool fold_;
};

Result<void> check_walk(const WalkOptions& options) {
  if (options.timeout <= std::chrono::milliseconds(0))
    return Error(Code::kInvalidArgument, "cannot search the workspace").reason("the timeout is not positive");
  return {};
}

}  // namespace

std::string Files::full_path(const std::string& below) const {
  if (below.starts_with('/')) return below;
  return (options_.workspace == "/" ? "" : options_.workspace) + "/" + below;
}
bool Files::may_list(const std::string& below) const { return judge_.may_read(below, full_path(below), true).has_value(); }

Result<std::string> Files::glob_below(const std::string& pattern) const {
  return policy::glob_below(pattern, options_.workspace, options_.named);
}

Result<Files::Search> Files::search_of(const std::string& pattern) const {
  auto below = glob_below(pattern);
  if (below) return Search{".", "", *std::move(below)};
  for (const Root& root : roots_) {
    if (!pattern.starts_with('/')) break;
    if (auto rest = policy::glob_below(pattern, root.canonical, root.named))
      return Search{root.canonical, root.canonical + "/", *std::move(rest)};
  }
  return below.error();
}

Result<GlobResult> Files::glob(const std::string& pattern, const WalkOptions& options) const {
  const Search in = BELLJAR_TRY(search_of(pattern));
  BELLJAR_CHECK(check_walk(options));
  const ActAs identity(options_.uid, options_.gid);
  if (in.top != ".") BELLJAR_CHECK(judge_.may_read(pattern, in.top, true));
  GlobResult result;
  Walk walk(options, [&](const std::string& below) { return may_list(below); });
  UniqueFd top = BELLJAR_TRY(open_beneath(pattern, in.top, O_RDONLY | O_DIRECTORY));
  walk.below(std::move(top), in.prefix, [&](int, const std::string&, FileInfo info) {
    const std::string_view below = std::string_view(info.path).substr(in.prefix.size());
    if (policy::glob_match(in.pattern, below) && !walk.full(result.files.size())) result.files.push_back(std::move(info));
  });
  std::ranges::sort(result.files, {}, &FileInfo::path);
  result.complete = walk.complete();
  return result;
}

Result<GrepResult> Files::grep(const std::string& text, const GrepOptions& options) const {
  if (text.empty() || text.find('\n') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot search for {}", quoted(text)))
        .reason("it is empty or more than one line")
        .next("give a part of one line");
  const Search in = BELLJAR_TRY(search_of(options.files));
  BELLJAR_CHECK(check_walk(options.walk));
  const ActAs identity(options_.uid, options_.gid);
  if (in.top != ".") BELLJAR_CHECK(judge_.may_read(options.files, in.top, true));
  const LineSearch search(text, options.letters);
  GrepResult result;
  Walk walk(options.walk, [&](const std::string& below) { return may_list(below); });
  walk.below(BELLJAR_TRY(open_beneath(options.files, in.top, O_RDONLY | O_DIRECTORY)), in.prefix,
             [&](int directory, const std::string& name, const FileInfo& info) {
               const std::string_view below = std::string_view(info.path).substr(in.prefix.size());
               if (info.type != FileType::kFile || !policy::glob_match(in.pattern, below)) return;
               const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
               if (!fd.valid() || !judge_.may_read(info.path, full_path(info.path), false)) return;
               search.search(fd.get(), [&](std::uint64_t line, std::string found) {
                 if (walk.full(result.matches.size())) return false;
                 result.matches.push_back({info.path, line, std::move(found)});
                 return !walk.stopped();
               });
             });
  std::ranges::stable_sort(result.matches, {}, &GrepMatch::path);
  result.complete = walk.complete();
  return result;
}

}  // namespace belljar::session
