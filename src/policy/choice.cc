// The choice among backends: each in order, until one starts.
//
// A backend that isolates less than `isolation` asks for is skipped with that reason. After a failure the
// next one is tried only if another backend could do better (is_worth_another): an error in the command or
// the policy would be the same everywhere. If none starts, the error has the reason of each.
#include "policy/choice.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/backends.h"

namespace belljar::policy {

Result<Choice> Choice::of(const Policy& policy) {
  std::vector<std::string> order = BELLJAR_TRY(backend_order(policy.backend, policy.fallback, policy.isolation));
  BELLJAR_CHECK(check_backend_keys(policy, order));
  return Choice(std::move(order), policy.isolation);
}

bool Choice::goes_on(const Error& error) const {
  if (settled_ || !is_worth_another(error) || tried_.size() == order_.size()) return false;
  return std::any_of(order_.begin() + static_cast<std::ptrdiff_t>(tried_.size()) + 1, order_.end(),
                     [this](const std::string& name) { return too_weak(name, wanted_).empty(); });
}

std::string Choice::next() {
  while (tried_.size() < order_.size()) {
    const std::string& name = order_[tried_.size()];
    std::string weak = too_weak(name, wanted_);
    if (weak.empty()) return name;
    last_ = too_weak_error(name, wanted_);
    tried_.push_back({name, std::move(weak)});
  }
  return {};
}

void Choice::failed(const Error& error) {
  tried_.push_back({order_[tried_.size()], error.line()});
  last_ = error;
}

Error Choice::refusal() const { return order_.size() == 1 && last_ ? *last_ : none_starts(tried_); }

}  // namespace belljar::policy
