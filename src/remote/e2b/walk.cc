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
#include "base/patience.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "http/client.h"
#include "policy/paths.h"
#include "remote/e2b/events.h"
#include "remote/e2b/files.h"
#include "remote/search.h"

namespace belljar::remote::e2b {

using http::Clock;
namespace {

using Json = nlohmann::json;

constexpr unsigned kDeepest = 200;

}  // namespace

Result<std::vector<Entry>> RemoteFiles::tree(const WalkOptions& options, bool& complete) const {
  BELLJAR_CHECK(check_walk(options));
  const std::string& top = core_->workspace();
  auto reply = core_->envd().call("filesystem.Filesystem/ListDir", Json{{"path", top}, {"depth", kDeepest}}.dump(),
                                  "cannot search the workspace", bounded(options.timeout), options.cancel.fd());
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
  const std::string rest = BELLJAR_TRY(policy::glob_below(pattern, core_->workspace()));
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
  BELLJAR_CHECK(check_text(text));
  const std::string rest = BELLJAR_TRY(policy::glob_below(options.files, core_->workspace()));
  const auto end = Clock::now() + bounded(options.walk.timeout);
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
  std::vector<std::string> argv = grep_words(text, options.letters);
  argv.insert(argv.end(), files.begin(), files.end());
  const auto helped = core_->help(std::move(argv), {}, left, options.walk.cancel, kMostFound);
  if (!helped) return false;
  return take_found(*helped, core_->workspace(), options.walk.max_results, result);
}

}  // namespace belljar::remote::e2b
