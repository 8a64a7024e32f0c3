// A Sandbox for tests of code that uses one: nothing is executed, files live in memory, every call is logged.
//
//   auto mock = MockSandbox::create();
//   mock->set_output("go test", "PASS\nok\n");
//   agent.use(mock);                       // it is a Sandbox
//   EXPECT_EQ(mock->calls().back().subject, "go test ./...");
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/sandbox.h"

namespace belljar {

struct MockCall {
  std::string method;   // "exec", "write_file", ...
  std::string subject;  // the command (shell text, or argv joined by spaces) or the path
  bool failed = false;  // an Error was returned
  bool operator==(const MockCall&) const = default;
};

// Commands are answered by the first rule that fits, exact ones before patterns, later ones before earlier. Without one the answer
// is exit code 127. A command that was given a delay longer than its timeout times out at once, without waiting.
class MockSandbox : public Sandbox {
 public:
  using Sandbox::exec;
  using Answer = std::function<ExecResult(const Command& command, const ExecOptions& options)>;

  static std::shared_ptr<MockSandbox> create(const std::string& workspace = "/workspace");

  // `command`: shell text or argv joined by spaces, exactly or the beginning of it up to a space.
  virtual void set_output(std::string command, std::string stdout_bytes, int exit_code = 0, std::string stderr_bytes = {}) = 0;
  // `pattern`: `*` is any text, `?` any byte.
  virtual void set_answer(std::string pattern, Answer answer) = 0;
  // How long the command is said to take; see above.
  virtual void set_delay(std::string command, std::chrono::milliseconds delay) = 0;
  // The next `times` calls of `method` (or all, "*") return this error instead.
  virtual void fail_next(std::string method, Error error, int times = 1) = 0;
  virtual std::vector<MockCall> calls() const = 0;
};

}  // namespace belljar
