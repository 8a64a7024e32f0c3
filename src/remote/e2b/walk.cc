// glob and grep: the daemon lists the tree, grep inside reads the files.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "policy/paths.h"
#include "remote/e2b/events.h"
#include "remote/e2b/files.h"
#include "remote/http.h"
#include "session/patience.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;

constexpr unsigned kDeepest = 200;
constexpr std::size_t kLongestLine = 1000;
constexpr std::size_t kMostNames = 96U << 10;  // of the arguments of one grep: the kernel takes 128 KiB at least
constexpr std::uint64_t kMostFound = 32U << 20;

Result<void> check_walk(const WalkOptions& options) {
  if (options.timeout <= std::chrono::milliseconds(0))
    return Error(Code::kInvalidArgument, "cannot search the workspace").reason("the timeout is not positive");
  return {};
}

// One "name NUL line : text" of `grep -Z -n`. False: it is none.
bool parse_match(std::string_view found, const std::string& top, GrepMatch& match) {
  const std::size_t nul = found.find('\0');
  const std::size_t colon = nul == std::string_view::npos ? nul : found.find(':', nul);
  if (colon == std::string_view::npos || !found.starts_with(top + "/")) return false;
  match.path = found.substr(top.size() + 1, nul - top.size() - 1);
  if (std::from_chars(found.data() + nul + 1, found.data() + colon, match.line).ec != std::errc()) return false;
  match.text = found.substr(colon + 1, kLongestLine);
  return true;
}

}  // namespace

Result<std::vector<Entry>> RemoteFiles::tree(const WalkOptions& options, bool& complete) const {
  BELLJAR_CHECK(check_walk(options));
  const std::string& top = core_->workspace();
  auto reply = core_->envd().call("filesystem.Filesystem/ListDir", Json{{"path", top}, {"depth", kDeepest}}.dump(),
                                  "cannot search the workspace", session::bounded(options.timeout), options.cancel.fd());
  complete = reply.has_value();
  if (!reply && reply.error().code() != Code::kDeadlineExceeded && reply.error().code() != Code::kCanceled) return reply.error();
  if (!reply) return std::vector<Entry>();
  auto entries = BELLJAR_TRY(parse_entries(*reply));
  // Relative to the workspace, whatever the way there is called inside.
  std::string prefix = top;
  if (!entries.empty() && !entries[0].path.starts_with(top + "/")) prefix = entries[0].path.substr(0, entries[0].path.rfind('/'));
  std::erase_if(entries, [&](Entry& entry) {
    if (!entry.path.starts_with(prefix + "/")) return true;
    entry.info.path = entry.path.substr(prefix.size() + 1);
    return false;
  });
  std::ranges::sort(entries, {}, [](const Entry& entry) { return entry.info.path; });
  return entries;
}

Result<GlobResult> RemoteFiles::glob(const std::string& pattern, const WalkOptions& options) const {
  BELLJAR_CHECK(policy::check_glob(pattern));
  std::string rest = BELLJAR_TRY(below(pattern)).substr(core_->workspace().size());
  rest.erase(0, 1);
  GlobResult result;
  for (Entry& entry : BELLJAR_TRY(tree(options, result.complete))) {
    if (!policy::glob_match(rest, entry.info.path)) continue;
    if (result.files.size() >= options.max_results) {
      result.complete = false;
      break;
    }
    result.files.push_back(std::move(entry.info));
  }
  return result;
}

Result<GrepResult> RemoteFiles::grep(const std::string& text, const GrepOptions& options) const {
  if (text.empty() || text.find('\n') != std::string::npos || text.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot search for {}", belljar::quoted(text)))
        .reason("it is empty or more than one line")
        .next("give a part of one line");
  BELLJAR_CHECK(policy::check_glob(options.files));
  std::string rest = BELLJAR_TRY(below(options.files)).substr(core_->workspace().size());
  rest.erase(0, 1);
  const auto end = Clock::now() + session::bounded(options.walk.timeout);
  GrepResult result;
  std::vector<std::string> batch;
  std::size_t size = 0;
  const auto flush = [&]() -> Result<void> {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (!batch.empty()) result.complete = BELLJAR_TRY(search(batch, text, options, left, result)) && result.complete;
    batch.clear();
    size = 0;
    return {};
  };
  for (const Entry& entry : BELLJAR_TRY(tree(options.walk, result.complete))) {
    if (entry.info.type != FileType::kFile || !policy::glob_match(rest, entry.info.path)) continue;
    batch.push_back(core_->workspace() + "/" + entry.info.path);
    size += batch.back().size() + 9;
    if (size > kMostNames) BELLJAR_CHECK(flush());
    if (!result.complete) break;
  }
  BELLJAR_CHECK(flush());
  return result;
}

// False: not all of it could be searched, or it is enough.
Result<bool> RemoteFiles::search(const std::vector<std::string>& files, const std::string& text, const GrepOptions& options,
                                 std::chrono::milliseconds left, GrepResult& result) const {
  if (left.count() <= 0 || options.walk.cancel.cancelled()) return false;
  std::vector<std::string> argv = {"grep", "-nHZaFs", "-D", "skip"};
  if (options.letters == Case::kIgnoreAscii) argv.emplace_back("-i");
  argv.insert(argv.end(), {"-e", text, "--"});
  argv.insert(argv.end(), files.begin(), files.end());
  const auto helped = core_->help(std::move(argv), {}, left, options.walk.cancel, kMostFound);
  if (!helped) return false;
  // With -s it is silent about files that went away or may not be read; status 2 alone is about them.
  if (helped->out.empty() && (helped->exit_code > 2 || (helped->exit_code == 2 && !helped->err.empty())))
    return Error(Code::kFailedPrecondition, "cannot search the workspace")
        .reason(format("grep inside failed: {}", escaped(helped->err.substr(0, 200))))
        .next("use a template that has GNU grep");
  std::string_view rest = helped->out;
  while (!rest.empty()) {
    // The name may hold a line end, the line may not.
    const std::size_t nul = rest.find('\0');
    const std::size_t end = nul == std::string_view::npos ? nul : rest.find('\n', nul);
    GrepMatch match;
    if (end == std::string_view::npos || !parse_match(rest.substr(0, end), core_->workspace(), match)) return false;
    if (result.matches.size() >= options.walk.max_results) return false;
    result.matches.push_back(std::move(match));
    rest.remove_prefix(end + 1);
  }
  return helped->complete;
}

}  // namespace belljar::remote::e2b
