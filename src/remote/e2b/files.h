// The file calls of a sandbox of E2B: by its daemon, and where that cannot do it by a command of ours.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/e2b/e2b_instance.h"
#include "remote/e2b/events.h"
#include "remote/files.h"

namespace belljar::remote::e2b {

class RemoteFiles final : public Files {
 public:
  RemoteFiles(std::shared_ptr<E2bInstance> instance, CancelToken end) : instance_(std::move(instance)), end_(std::move(end)) {}

  Result<std::string> read(const std::string& path, const ReadOptions& options) const override;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const override;
  Result<std::vector<FileInfo>> list(const std::string& path) const override;
  Result<FileInfo> stat(const std::string& path) const override;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const override;
  Result<void> rename(const std::string& from, const std::string& to) const override;
  Result<void> remove(const std::string& path, const RemoveOptions& options) const override;
  Result<std::string> find_cwd(const std::string& cwd) const override;
  // Made when it is not there.
  Result<void> make_workspace() const;

 private:
  Commands& commands() const noexcept override { return *instance_; }
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
  Result<std::vector<FileInfo>> tree(const WalkOptions& options, bool& complete) const override;

  std::shared_ptr<E2bInstance> instance_;
  CancelToken end_;
};

}  // namespace belljar::remote::e2b
