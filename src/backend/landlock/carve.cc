// Landlock rules only add up: nothing below an allowed directory can be taken away again. So "all but these"
// is written as the largest paths that contain none of them: a directory that holds a hidden path is replaced
// by its entries, recursively. What is made later in a directory that was split is not allowed; what cannot
// be listed is left out as a whole. `most` bounds the number of rules.
#include "backend/landlock/carve.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

struct Carver {
  const std::vector<std::string>& hidden;
  const Lister& list;
  std::size_t most;
  std::vector<std::string> allowed;

  // False when there are too many.
  bool visit(const std::string& path) {
    if (std::find(hidden.begin(), hidden.end(), path) != hidden.end()) return true;
    const bool holds_one =
        std::any_of(hidden.begin(), hidden.end(), [&](const std::string& secret) { return is_under(secret, path); });
    if (!holds_one) {
      allowed.push_back(path);
      return allowed.size() <= most;
    }
    const auto names = list(path);
    if (!names) return true;
    return std::all_of(names->begin(), names->end(),
                       [&](const std::string& name) { return visit((path == "/" ? "" : path) + "/" + name); });
  }
};

}  // namespace

Result<std::vector<std::string>> carve(const std::string& root, const std::vector<std::string>& hidden, const Lister& list,
                                       std::size_t most) {
  Carver carver{hidden, list, most, {}};
  if (!carver.visit(root)) {
    return Error(Code::kResourceExhausted, format("cannot allow {} around its hidden parts", quoted(root)))
        .reason(format("that takes more than {} rules", most))
        .next("hide fewer or shallower paths, or use the native backend");
  }
  return std::move(carver.allowed);
}

}  // namespace belljar::backend
