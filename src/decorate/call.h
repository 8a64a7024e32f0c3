// Helpers of decorators: the text of a call, and processes that are forwarded.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owner.h"
#include "belljar/error.h"
#include "belljar/process.h"
#include "belljar/sandbox.h"

namespace belljar::decorate {

// Shell text as it is, or argv joined by spaces.
std::string text_of(const Command& command);
std::string text_of(const NetworkRules& rules);
// "TITLE a, b", or nothing of none.
std::string text_of(const std::vector<std::string>& hosts, std::string_view title);

// The error that records show for a call whose callback threw; the caller gets the exception itself.
Error callback_threw();

class ForwardedProcess : public Process {
 public:
  explicit ForwardedProcess(std::unique_ptr<Process> inner) : inner_(std::move(inner)) {}
  int pid() const noexcept override { return inner_->pid(); }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    return inner_->wait(patience);
  }
  Result<void> signal(int number) override { return inner_->signal(number); }
  Result<void> terminate() override { return inner_->terminate(); }
  Result<void> kill() override { return inner_->kill(); }
  Result<void> write_stdin(std::string_view bytes, std::chrono::milliseconds patience) override {
    return inner_->write_stdin(bytes, patience);
  }
  Result<void> close_stdin() override { return inner_->close_stdin(); }
  Result<void> resize(unsigned short rows, unsigned short columns) override { return inner_->resize(rows, columns); }
  Result<void> detach() override {
    auto detached = inner_->detach();
    detached_ = detached_ || detached.has_value();
    return detached;
  }

 protected:
  // In a forked child the command is the parent's: whatever becomes of this copy, nothing of the command is to be told.
  bool is_ours() const noexcept { return owner_.is_this(); }
  bool detached() const noexcept { return detached_; }
  // Ends the command, as the inner handle's destructor does. For destructors that have something to tell afterwards.
  void end() noexcept { inner_.reset(); }
  Process& inner() const noexcept { return *inner_; }

 private:
  OwningProcess owner_;
  std::unique_ptr<Process> inner_;
  std::atomic<bool> detached_{false};
};

}  // namespace belljar::decorate
