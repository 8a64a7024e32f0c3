// A started sandbox as its commands and file calls use it: the daemon, the mark of its commands, their end.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "belljar/result.h"
#include "remote/commands.h"
#include "remote/e2b/envd.h"

namespace belljar::remote::e2b {

class E2bInstance final : public Commands, public std::enable_shared_from_this<E2bInstance> {
 public:
  E2bInstance(Envd envd, std::string workspace, std::string nonce)
      : Commands(std::move(workspace), std::move(nonce), "template"), envd_(std::move(envd)) {}

  const Envd& envd() const noexcept { return envd_; }
  std::string next_mark() { return nonce() + "-" + std::to_string(++serial_) + "."; }

  Result<std::shared_ptr<command::RunningCommand>> start(command::Request request) override;
  // Signals whatever carries a mark that begins with `mark`. False: that could not be done.
  bool kill_marked(const std::string& mark, int signal, std::chrono::milliseconds patience = std::chrono::seconds(10),
                   const CancelToken& cancel = {});

 private:
  Envd envd_;
  std::atomic<unsigned> serial_{0};
};

}  // namespace belljar::remote::e2b
