// glob and grep: find inside lists the tree, grep inside reads the files.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/patience.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "policy/paths.h"
#include "remote/paths.h"
#include "remote/search.h"
#include "remote/shell/files.h"

namespace belljar::remote::shell {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kMostTree = 64U << 20;

}  // namespace

Result<std::vector<FileInfo>> ShellFiles::tree(const WalkOptions& options, bool& complete) const {
  BELLJAR_CHECK(check_walk(options));
  std::vector<FileInfo> files;
  const std::string script = "cd \"$1\" || exit 1\n" + walk_script("-mindepth 1");
  const auto helped = core_->help({"/bin/sh", "-c", script, "sh", core_->workspace(), kRecordText}, {}, bounded(options.timeout),
                                  options.cancel, kMostTree);
  complete = helped && helped->complete;
  if (!helped && helped.error().code() != Code::kDeadlineExceeded && helped.error().code() != Code::kCanceled)
    return helped.error();
  if (!helped) return files;
  if (helped->exit_code != 0 && helped->out.empty()) return complaint_of(helped->err, "search", core_->workspace());
  complete = parse_records(helped->out, files) && complete;
  std::ranges::sort(files, {}, &FileInfo::path);
  return files;
}

Result<GlobResult> ShellFiles::glob(const std::string& pattern, const WalkOptions& options) const {
  const std::string rest = BELLJAR_TRY(policy::glob_below(pattern, core_->workspace()));
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

Result<GrepResult> ShellFiles::grep(const std::string& text, const GrepOptions& options) const {
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
  for (const FileInfo& file : BELLJAR_TRY(tree(options.walk, result.complete))) {
    if (file.type != FileType::kFile || !policy::glob_match(rest, file.path)) continue;
    batch.push_back(core_->workspace() + "/" + file.path);
    size += batch.back().size() + 9;
    if (size > kMostNames) BELLJAR_CHECK(flush());
    if (!result.complete) break;
  }
  BELLJAR_CHECK(flush());
  return result;
}

// False: not all of it could be searched, or it is enough.
Result<bool> ShellFiles::search(const std::vector<std::string>& files, const std::string& text, const GrepOptions& options,
                                std::chrono::milliseconds left, GrepResult& result) const {
  if (left.count() <= 0 || options.walk.cancel.cancelled()) return false;
  std::vector<std::string> argv = grep_words(text, options.letters);
  argv.insert(argv.end(), files.begin(), files.end());
  const auto helped = core_->help(std::move(argv), {}, left, options.walk.cancel, kMostFound);
  if (!helped) return false;
  return take_found(*helped, core_->workspace(), options.walk.max_results, result);
}

}  // namespace belljar::remote::shell
