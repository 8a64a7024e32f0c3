// The file calls of a sandbox where only shell text runs: a command of ours for each. Paths are judged as text, below the
// workspace; what links inside lead to is the sandbox's own affair: the boundary is the machine.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/shell/core.h"

namespace belljar::remote::shell {

// As they are declared in belljar/sandbox.h. A value that shares the core.
class ShellFiles {
 public:
  explicit ShellFiles(std::shared_ptr<Core> core, CancelToken end = {}) : core_(std::move(core)), end_(std::move(end)) {}
  // The same, for calls that give up when `end` is cancelled: kCanceled, within a second or two. glob and grep have a token of
  // their own.
  ShellFiles until(CancelToken end) const { return ShellFiles(core_, std::move(end)); }

  Result<std::string> read(const std::string& path, const ReadOptions& options) const;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const;
  Result<std::vector<FileInfo>> list(const std::string& path) const;
  Result<FileInfo> stat(const std::string& path) const;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const;
  Result<void> rename(const std::string& from, const std::string& to) const;
  Result<void> remove(const std::string& path, const RemoveOptions& options) const;
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) const;
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) const;

 private:
  Result<Helped> call(const char* script, std::vector<std::string> words, std::string bytes = {}) const;
  Result<void> change(const char* script, std::vector<std::string> words, std::string_view doing, const std::string& path) const;
  Result<std::string> read_part(const std::string& full, const std::string& path, std::uint64_t offset, std::uint64_t limit,
                                bool whole, std::uint64_t& size) const;
  std::string walk_script(const char* depth) const;
  Result<std::vector<FileInfo>> tree(const WalkOptions& options, bool& complete) const;
  Result<bool> search(const std::vector<std::string>& files, const std::string& text, const GrepOptions& options,
                      std::chrono::milliseconds left, GrepResult& result) const;

  std::shared_ptr<Core> core_;
  CancelToken end_;
};

extern const char* const kRecordText;  // the second word of walk_script()

// Records of the scripts: "TYPE SIZE MODE TIME NAME NUL TARGET NUL", or with a mode in hexadecimal, "xMODE SIZE TIME NAME NUL
// TARGET NUL". False: one is none, or not whole.
bool parse_records(std::string_view text, std::vector<FileInfo>& files);

}  // namespace belljar::remote::shell
