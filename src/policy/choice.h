// Which backend a run falls back to: the one loop over those that may hold it. Used by `belljar run`, by belljar::run and by
// make_sandbox(); which there are, in which order: backends.h. A value; no system calls.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/backends.h"

namespace belljar::policy {

class Choice {
 public:
  // The policy's `backend`, then its `fallback`. Errors: as backend_order() and check_backend_keys().
  static Result<Choice> of(const Policy& policy);
  // `tried`: the first of `order`, which have had their turn.
  Choice(std::vector<std::string> order, Isolation wanted, std::vector<TriedBackend> tried = {})
      : order_(std::move(order)), wanted_(wanted), tried_(std::move(tried)) {}

  // What `start(name)` returns of the first that starts. An error that another backend may do without passes the turn on, and those
  // that are too weak for policy.isolation have none. When none is left: the error itself where there was one backend only, else
  // what each of them said.
  template <class Start>
  auto first(const Start& start) -> decltype(start(std::string())) {
    for (std::string name = next(); !name.empty(); name = next()) {
      auto started = start(name);
      if (started || settled_ || !is_worth_another(started.error())) return started;
      failed(started.error());
    }
    return refusal();
  }
  // From `start`: something was launched, or the run was given up. No other is tried, whatever comes.
  void settle() noexcept { settled_ = true; }
  bool* settled() noexcept { return &settled_; }  // for who can only set a flag
  // From `start`: whether another follows after `error`.
  bool goes_on(const Error& error) const;

  const std::vector<std::string>& order() const noexcept { return order_; }
  // In order; those that had no turn are among them.
  const std::vector<TriedBackend>& tried() const noexcept { return tried_; }

 private:
  std::string next();
  void failed(const Error& error);
  Error refusal() const;

  std::vector<std::string> order_;
  Isolation wanted_;
  std::vector<TriedBackend> tried_;  // the first of order_
  std::optional<Error> last_;
  bool settled_ = false;
};

}  // namespace belljar::policy
