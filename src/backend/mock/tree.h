// The files of a mock sandbox, in memory. Paths mean what they mean on the backends with a file system: ".." is a step up from a
// directory that has to be there, a permission bit that is missing refuses, and what openat(2), mkdir(2) and rename(2) refuse is
// refused with the same code. There are no links, and one user, who owns everything and is not root.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/files.h"
#include "belljar/result.h"

namespace belljar::mock {

class Tree {
 public:
  // `workspace`: absolute and normal.
  explicit Tree(std::string workspace);

  Result<std::string> read(const std::string& path, const ReadOptions& options) const;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options);
  Result<std::vector<FileInfo>> list(const std::string& path) const;
  Result<FileInfo> stat(const std::string& path) const;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options);
  Result<void> rename(const std::string& from, const std::string& to);
  Result<void> remove(const std::string& path, const RemoveOptions& options);
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) const;
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) const;
  // Whether a command could work there. Errors: kInvalidArgument, "workdir escapes workspace"; kNotFound; kFailedPrecondition.
  Result<void> check_cwd(const std::string& cwd) const;

 private:
  struct Node {
    FileType type = FileType::kFile;
    std::string bytes;
    unsigned mode = 0644;
  };
  // A name and the directory that it stands in, both as keys: relative to the workspace, "" for the workspace itself.
  struct Site {
    std::string parent, key;
  };
  static FileInfo info(const std::string& path, const Node& node);

  Result<std::string> relative(const std::string& path) const;
  Result<std::string> walk(std::string_view doing, const std::string& path, std::string_view rest) const;
  Result<const Node*> find(std::string_view doing, const std::string& path, std::string* key = nullptr) const;
  Result<Site> find_site(std::string_view doing, const std::string& path) const;
  Result<void> may_change(std::string_view doing, const std::string& path, const std::string& directory) const;
  Result<void> make_parents(const std::string& path, std::string_view rest, std::optional<unsigned> mode,
                            std::vector<std::string>& made);
  Result<void> write_there(const std::string& path, std::string_view bytes, const WriteOptions& options);
  bool is_full(const std::string& directory) const;
  bool is_shown(const std::string& key) const;

  std::string workspace_;
  std::map<std::string, Node> nodes_;  // by key
};

}  // namespace belljar::mock
