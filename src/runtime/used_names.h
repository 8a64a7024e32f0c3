// Hidden paths that a command used: what a mask refuses inside the kernel is told to nobody, but each name leads over a link of its
// own, and its access time tells (backend/native/tree.h). Which process it was, and whether it opened or looked, it does not.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "runtime/violations.h"

namespace belljar::runtime {

class UsedNames {
 public:
  UsedNames() = default;
  // Of a sandbox made from `prepared`, which gave `given` (launch::Sandbox::take_exported): the last of them, where it hides names.
  static UsedNames of(const backend::Prepared& prepared, std::vector<UniqueFd>&& given);

  // Adds to `result` a violation for each path that was used since the last call and of which none tells yet. `complete`:
  // policy::Effective::complete; may be null, as `origins`.
  void add_violations(ExecResult& result, const Policy& policy, const Filesystem* complete, const Origins* origins) const;

 private:
  UniqueFd links_;  // the directory with the links 0, 1 ..., one for each of `paths_`
  std::vector<std::string> paths_;
};

}  // namespace belljar::runtime
