// What the pointers of belljar.h point to.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "belljar/belljar.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

struct belljar_sandbox {
  std::shared_ptr<belljar::Sandbox> sandbox;
};
struct belljar_result {
  belljar::ExecResult result;
  std::string reason, refusals;
};
struct belljar_error {
  belljar::Code code;
  std::string line;
};

namespace belljar::capi {

// Runs `work`; an Error, or an exception, becomes a code and `*error` (which may be null). Nothing is thrown.
belljar_code guarded(belljar_error** error, const std::function<Result<void>()>& work) noexcept;

// A policy of the caller's text for `workspace`: the built-in profile (or the one that the text names) below it.
Result<Policy> policy_of(const char* toml, const std::string& workspace);

}  // namespace belljar::capi
