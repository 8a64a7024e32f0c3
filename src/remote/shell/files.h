// The file calls of a sandbox where only shell text runs: a command of ours for each.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/files.h"
#include "remote/shell/shell_instance.h"

namespace belljar::remote::shell {

class ShellFiles final : public Files {
 public:
  ShellFiles(std::shared_ptr<ShellInstance> instance, CancelToken end) : instance_(std::move(instance)), end_(std::move(end)) {}

  Result<std::string> read(const std::string& path, const ReadOptions& options) const override;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const override;
  Result<std::vector<FileInfo>> list(const std::string& path) const override;
  Result<FileInfo> stat(const std::string& path) const override;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const override;
  Result<void> rename(const std::string& from, const std::string& to) const override;
  Result<void> remove(const std::string& path, const RemoveOptions& options) const override;

 private:
  Commands& commands() const noexcept override { return *instance_; }
  Result<HelperResult> call(const char* script, std::vector<std::string> words, std::string bytes = {}) const;
  Result<void> change(const char* script, std::vector<std::string> words, std::string_view doing, const std::string& path) const;
  Result<std::string> read_part(const std::string& full, const std::string& path, std::uint64_t offset, std::uint64_t limit,
                                bool whole, std::uint64_t& size) const;
  std::string walk_script(const char* depth) const;
  Result<std::vector<FileInfo>> tree(const WalkOptions& options, bool& complete) const override;

  std::shared_ptr<ShellInstance> instance_;
  CancelToken end_;
};

extern const char* const kRecordText;  // the second word of walk_script()

// Records of the scripts: "TYPE SIZE MODE TIME NAME NUL TARGET NUL", or with a mode in hexadecimal, "xMODE SIZE TIME NAME NUL
// TARGET NUL". False: one is none, or not whole.
bool parse_records(std::string_view text, std::vector<FileInfo>& files);

}  // namespace belljar::remote::shell
