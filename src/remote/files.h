// The file calls of a sandbox elsewhere. Paths are judged as text, below the workspace; what links inside lead to is the sandbox's
// own affair: the boundary is the machine.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/commands.h"

namespace belljar::remote {

// As they are declared in belljar/sandbox.h.
class Files {
 public:
  Files() = default;
  virtual ~Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  virtual Result<std::string> read(const std::string& path, const ReadOptions& options) const = 0;
  virtual Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const = 0;
  virtual Result<std::vector<FileInfo>> list(const std::string& path) const = 0;
  virtual Result<FileInfo> stat(const std::string& path) const = 0;
  virtual Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to) const = 0;
  virtual Result<void> remove(const std::string& path, const RemoveOptions& options) const = 0;
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) const;
  // The tree is listed, and grep inside reads the files.
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) const;

  // The working directory of a command; empty: the workspace. Errors: kInvalidArgument, "workdir escapes workspace: ...". A missing
  // one is complained of when the command starts.
  virtual Result<std::string> find_cwd(const std::string& cwd) const;

 protected:
  virtual Commands& commands() const noexcept = 0;
  // All below the workspace, by paths from there, sorted. False in `complete`: it is not all.
  virtual Result<std::vector<FileInfo>> tree(const WalkOptions& options, bool& complete) const = 0;

 private:
  Result<bool> search(const std::vector<std::string>& files, const std::string& text, const GrepOptions& options,
                      std::chrono::milliseconds left, GrepResult& result) const;
};

}  // namespace belljar::remote
