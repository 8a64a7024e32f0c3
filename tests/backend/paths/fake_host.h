// A host of literal paths, for tests of plans: no kernel, no files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/paths/host.h"

namespace belljar::backend::test {

class FakeHost : public Host {
 public:
  FakeHost& dir(const std::string& path, uid_t uid = 1000, mode_t mode = 0755) {
    for (std::string up = parent_of(path); up != "/"; up = parent_of(up))
      facts_.try_emplace(up, PathFacts{PathKind::kDirectory, 0, 0, 040755, 1});
    facts_[path] = {PathKind::kDirectory, uid, uid, 040000 | mode, 1};
    return *this;
  }
  FakeHost& file(const std::string& path, std::string text = "") {
    dir(parent_of(path));
    facts_[path] = {PathKind::kFile, 1000, 1000, 0100644, 1};
    texts_[path] = std::move(text);
    return *this;
  }
  FakeHost& link(const std::string& path, const std::string& target) {
    facts_[path] = {PathKind::kSymlink, 1000, 1000, 0120777, 1};
    links_[path] = target;
    return *this;
  }
  FakeHost& node(const std::string& path) {
    dir(parent_of(path));
    facts_[path] = {PathKind::kOther, 0, 0, 0020666, 1};
    return *this;
  }
  // Another file system than the rest.
  FakeHost& mounted(const std::string& path) {
    dir(path).facts_[path].dev = 2;
    mounts_.push_back(path);
    return *this;
  }
  // The command's id may not enter or read it, by its owner and mode.
  FakeHost& close(const std::string& path) {
    closed_.insert(path);
    return *this;
  }
  FakeHost& landlock(int abi) {
    abi_ = abi;
    return *this;
  }

  PathFacts facts(const std::string& path) const override {
    for (const auto& [link, target] : links_) {
      if (path != link && is_under(path, link)) return facts(target + path.substr(link.size()));
    }
    const auto found = facts_.find(path);
    return found == facts_.end() ? PathFacts{} : found->second;
  }
  std::optional<std::string> canonical(const std::string& path) const override {
    if (path == "/") return path;
    // One link anywhere in the path is enough here.
    for (const auto& [link, target] : links_) {
      if (is_under(path, link)) return canonical(target + path.substr(link.size()));
    }
    return facts(path).kind == PathKind::kAbsent ? std::nullopt : std::optional(path);
  }
  std::optional<std::string> link_text(const std::string& path) const override {
    const auto found = links_.find(path);
    return found == links_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> read_small(const std::string& path) const override {
    const auto found = texts_.find(path);
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> names_in(const std::string& folder) const override {
    std::vector<std::string> names;
    for (const auto& [path, facts] : facts_) {
      if (parent_of(path) == folder && path != "/") names.push_back(path.substr(path.rfind('/') + 1));
    }
    return names;
  }
  const std::vector<std::string>& mount_points() const override { return mounts_; }
  bool open_to_command(const std::string& path) const override { return !closed_.contains(path); }
  FakeHost& root() {
    uid_ = 0;
    return *this;
  }
  uid_t uid() const override { return uid_; }
  gid_t gid() const override { return 1000; }
  int landlock_abi() const override { return abi_; }

 private:
  std::map<std::string, PathFacts> facts_;
  std::map<std::string, std::string> texts_, links_;
  std::set<std::string> closed_;
  std::vector<std::string> mounts_{"/"};
  int abi_ = 6;
  uid_t uid_ = 1000;
};

}  // namespace belljar::backend::test
