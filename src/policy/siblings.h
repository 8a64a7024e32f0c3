// Which of the directories that other sandboxes work in are hidden from this one (filesystem.siblings).
#pragma once

#include <string>
#include <vector>

namespace belljar::policy {

// Canonical, absolute paths; empty where there is none.
struct SiblingQuestion {
  std::string workspace, home;
  std::vector<std::string> opened;   // what rules of the user's name for reading or writing
  std::vector<std::string> volumes;  // sources
  std::vector<std::string> others;   // what other sandboxes work in, or make workspaces in
};

struct SiblingAnswer {
  std::vector<std::string> hidden;   // sorted, none within another
  std::vector<std::string> visible;  // "`PATH` (why)", sorted
  bool operator==(const SiblingAnswer&) const = default;
};

// A workspace within this one is a part of it and stays, as does what somebody named, or what $HOME lies in. One around this
// workspace is hidden: only this one is seen of it. The same directory is the own one.
SiblingAnswer choose_siblings(SiblingQuestion question);

}  // namespace belljar::policy
