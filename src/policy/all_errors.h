// Every error of a policy at once, where each check stops at its first: what an error rests on is found by leaving settings out,
// told, and left out for the next round.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "belljar/error.h"
#include "belljar/result.h"
#include "policy/layer.h"

namespace belljar::policy {

using LayerCheck = std::function<Result<void>(const Layer& layer)>;

// At most kMostErrors, each with the line of the setting or the element that it rests on, where it does not name one itself.
// `check` is called some times for each setting and each error: it must decide by the layer alone.
inline constexpr std::size_t kMostErrors = 100;
std::vector<Error> all_errors(Layer layer, const LayerCheck& check);

}  // namespace belljar::policy
