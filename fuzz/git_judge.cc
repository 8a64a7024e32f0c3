// Any bytes as each kind of git's control files: no crash, no hang; what is accepted is still accepted when nothing is changed, and
// a configuration that is accepted holds no key that is not on the list.
#include "broker/git_judge.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "broker/git_config.h"
#include "broker/git_keys.h"
#include "broker/git_names.h"

using namespace belljar::broker;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const std::vector<std::string> roots = {"/w"};
  const GitContext fresh{.old_content = {}, .roots = roots, .reaches = {}, .is_link = {}};
  for (const GitName kind : {GitName::kConfig, GitName::kPointer, GitName::kHook, GitName::kAttributes, GitName::kAlternates,
                             GitName::kTodo, GitName::kIndex, GitName::kOption}) {
    for (const std::string_view path :
         {"/w/.git", "/w/.git/config", "/w/.git/worktrees/x/commondir", "/w/.git/worktrees/x/gitdir"}) {
      const auto objection = git_objection(kind, path, text, fresh);
      if (objection && objection->empty()) std::abort();
      if (git_objection(kind, path, text, {.old_content = text, .roots = roots, .reaches = {}, .is_link = {}}) &&
          size <= kMaxControlFile)
        std::abort();
    }
  }
  if (!git_objection(GitName::kConfig, "/w/.git/config", text, fresh)) {
    for (const GitConfigEntry& entry : parse_git_config(text).entries) {
      if (!find_git_key(entry.key)) std::abort();
    }
  }
  const std::string path = "/w/" + std::string(text.substr(0, text.find('\0')));
  const GitRoles roles = git_roles(path, size % 2 == 0);
  if (roles.count < 0 || roles.count > GitRoles::kMax) std::abort();
  return 0;
}
