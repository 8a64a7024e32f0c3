// The files of a dry run: what was written, made and taken away, over what the inner sandbox shows. Paths mean what they mean
// inside, links included.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar::decorate {

// One thread at a time. A resolved path is relative to the workspace, through no link, and "." is the workspace; or it is absolute
// and in one of Sandbox::roots().
class DryRunFiles {
 public:
  explicit DryRunFiles(Sandbox& inner) : inner_(inner) {}
  void forget() { nodes_.clear(); }
  // Calls of the inner sandbox have these options from now on.
  void use(CallOptions call) { call_ = std::move(call); }

  // Links are followed on the way, and at the end when `follow`; what is behind a "/" or "." at the end is a directory.
  Result<std::string> resolve(const std::string& path, bool follow);

  // By resolved path.
  Result<FileInfo> look(const std::string& path);
  Result<std::string> read(const std::string& path, const ReadOptions& options);
  Result<std::vector<FileInfo>> list(const std::string& path);

  // As a caller wrote the path.
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options);
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options);
  Result<void> rename(const std::string& from, const std::string& to);
  Result<void> remove(const std::string& path, Depth depth);

  // True when results of inner.glob and inner.grep for this path still hold.
  bool is_as_inside(const std::string& path) const { return !nodes_.contains(path) && !hidden_by_parent(path); }
  // The names of the overlay that fit `pattern`, which the inner sandbox accepted.
  std::vector<std::string> written(const std::string& pattern);

 private:
  // A name that was written, made or taken away.
  struct Node {
    enum class Kind { kFile, kDirectory, kGone } kind = Kind::kFile;
    std::string bytes;
    std::string source;  // not empty: the content is still that of this file inside
    unsigned mode = 0644;
    std::chrono::system_clock::time_point modified = std::chrono::system_clock::now();
  };
  using Undo = std::vector<std::pair<std::string, std::optional<Node>>>;  // what stood under names that were made

  ReadOptions in_time(ReadOptions options) const;
  Result<std::string> relative(const std::string& path);
  std::optional<std::string> inside(const std::string& path) const;
  std::string top_of(const std::string& rest) const;
  Result<std::string> find_other_name(const std::string& path);
  Result<std::string> walk(const std::string& asked, const std::string& rest, bool follow);
  Result<std::string> find_site(const std::string& asked, std::string rest);
  Result<std::string> find_target(const std::string& asked, std::string rest);
  Result<void> may_change(std::string_view doing, const std::string& path);
  Result<void> make_parents(const std::string& asked, const std::string& rest, unsigned mode, Undo& undo);
  Result<void> write_there(const std::string& asked, const std::string& path, std::string_view bytes, const WriteOptions& options);
  bool hidden_by_parent(const std::string& path) const;
  void take_away(const std::string& path);
  Result<void> collect(const std::string& from, const std::string& to, const FileInfo& info, std::map<std::string, Node>& moved);

  Sandbox& inner_;
  CallOptions call_;
  std::string other_name_;  // of the workspace, absolute, once somebody used it; else empty
  std::map<std::string, Node> nodes_;
};

}  // namespace belljar::decorate
