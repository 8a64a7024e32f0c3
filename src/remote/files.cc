// glob and grep for every cloud. The tree comes in one answer and the pattern is matched here, so that patterns
// mean the same on every cloud. grep runs inside, in batches: one call per file would cost one way to the cloud
// each, and all names together may be more than execve(2) takes as arguments. What does not fit into the time
// leaves the result incomplete.
#include "remote/files.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/patience.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "policy/paths.h"
#include "remote/paths.h"
#include "remote/search.h"

namespace belljar::remote {

Result<std::string> Files::find_cwd(const std::string& cwd) const { return cwd_below(commands().workspace(), cwd); }

Result<GlobResult> Files::glob(const std::string& pattern, const WalkOptions& options) const {
  const std::string rest = BELLJAR_TRY(policy::glob_below(pattern, commands().workspace()));
  GlobResult result;
  for (FileInfo& file : BELLJAR_TRY(tree(options, result.complete))) {
    if (!policy::glob_match(rest, file.path)) continue;
    if (result.files.size() >= options.max_results) {
      result.complete = false;
      break;
    }
    result.files.push_back(std::move(file));
  }
  return result;
}

Result<GrepResult> Files::grep(const std::string& text, const GrepOptions& options) const {
  BELLJAR_CHECK(check_text(text));
  const std::string rest = BELLJAR_TRY(policy::glob_below(options.files, commands().workspace()));
  const auto end = std::chrono::steady_clock::now() + bounded(options.walk.timeout);
  GrepResult result;
  std::vector<std::string> batch;
  std::size_t size = 0;
  const auto flush = [&]() -> Result<void> {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (!batch.empty()) result.complete = BELLJAR_TRY(search(batch, text, options, left, result)) && result.complete;
    batch.clear();
    size = 0;
    return {};
  };
  for (const FileInfo& file : BELLJAR_TRY(tree(options.walk, result.complete))) {
    if (file.type != FileType::kFile || !policy::glob_match(rest, file.path)) continue;
    batch.push_back(commands().workspace() + "/" + file.path);
    size += batch.back().size() + 9;
    if (size > kMostNames) BELLJAR_CHECK(flush());
    if (!result.complete) break;
  }
  BELLJAR_CHECK(flush());
  return result;
}

// False: not all of it could be searched, or it is enough.
Result<bool> Files::search(const std::vector<std::string>& files, const std::string& text, const GrepOptions& options,
                           std::chrono::milliseconds left, GrepResult& result) const {
  if (left.count() <= 0 || options.walk.cancel.cancelled()) return false;
  std::vector<std::string> argv = grep_words(text, options.letters);
  argv.insert(argv.end(), files.begin(), files.end());
  const auto helped = commands().help(std::move(argv), {}, left, options.walk.cancel, kMostFound);
  if (!helped) return false;
  return add_matches(*helped, commands().workspace(), options.walk.max_results, result);
}

}  // namespace belljar::remote
