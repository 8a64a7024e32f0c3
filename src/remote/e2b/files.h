// The file calls of a sandbox in the cloud. Paths are judged as text, below the workspace; what links inside lead to is the
// sandbox's own affair: the boundary is the machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/e2b/core.h"

namespace belljar::remote::e2b {

// As they are declared in belljar/sandbox.h. A value that shares the core.
class RemoteFiles {
 public:
  explicit RemoteFiles(std::shared_ptr<Core> core, CancelToken end = {}) : core_(std::move(core)), end_(std::move(end)) {}
  // The same, for calls that give up when `end` is cancelled: kCanceled, within seconds. glob and grep have a token of their own.
  RemoteFiles until(CancelToken end) const { return RemoteFiles(core_, std::move(end)); }

  Result<std::string> read(const std::string& path, const ReadOptions& options) const;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const;
  Result<std::vector<FileInfo>> list(const std::string& path) const;
  Result<FileInfo> stat(const std::string& path) const;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const;
  Result<void> rename(const std::string& from, const std::string& to) const;
  Result<void> remove(const std::string& path, const RemoveOptions& options) const;
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) const;
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) const;

  // Of a command; empty: the workspace. Errors: kInvalidArgument, "workdir escapes workspace: ..."; kNotFound.
  Result<std::string> find_cwd(const std::string& cwd) const;
  // Made when it is not there.
  Result<void> make_workspace() const;

 private:
  Result<std::string> below(const std::string& path) const;        // absolute
  Result<std::string> named_below(const std::string& path) const;  // and not the workspace itself
  static Result<std::string> as_text(const std::string& path, std::string full);
  Result<Entry> look(const std::string& full, const std::string& path, std::string_view doing) const;
  Result<std::string> call(const char* method, const std::string& json, std::string_view doing, const std::string& path) const;
  Result<void> append(const std::string& full, const std::string& path, std::string_view bytes) const;
  Result<void> replace(const std::string& full, const std::string& path, std::string_view bytes, const WriteOptions& options,
                       const Result<Entry>& before) const;
  Result<void> set_mode(const std::string& full, const std::string& path, unsigned mode) const;
  Result<void> need_parent(const std::string& full, const std::string& path, std::string_view doing) const;
  Result<std::vector<Entry>> tree(const WalkOptions& options, bool& complete) const;
  Result<bool> search(const std::vector<std::string>& files, const std::string& text, const GrepOptions& options,
                      std::chrono::milliseconds left, GrepResult& result) const;

  std::shared_ptr<Core> core_;
  CancelToken end_;
};

}  // namespace belljar::remote::e2b
