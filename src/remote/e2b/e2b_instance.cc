#include "remote/e2b/e2b_instance.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "command/request.h"
#include "command/running_command.h"
#include "remote/e2b/e2b_command.h"
#include "remote/marked.h"

namespace belljar::remote::e2b {

Result<std::shared_ptr<command::RunningCommand>> E2bInstance::start(command::Request request) {
  const bool marked = request.purpose != command::Purpose::kHelper;
  auto run = BELLJAR_TRY(E2bCommand::start(shared_from_this(), std::move(request)));
  if (marked) add(run);
  return std::shared_ptr<command::RunningCommand>(std::move(run));
}

bool E2bInstance::kill_marked(const std::string& mark, int signal, std::chrono::milliseconds patience, const CancelToken& cancel) {
  const auto helped = help({"/bin/sh", "-c", kEndMarked, "sh", mark, std::to_string(signal)}, {}, patience, cancel);
  return helped && helped->exit_code == 0;
}

}  // namespace belljar::remote::e2b
