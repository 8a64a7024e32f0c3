// What sandboxes of every cloud have in common: a life that the service ends by itself, and an id by which it is found again. Made
// by e2b.h, aliyun.h, volcengine.h.
#pragma once

#include <chrono>
#include <string>

#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar {

// What stop(), and the destructor, do with the sandbox in the cloud. Its commands end in any case.
enum class CloudOnStop {
  kKill,
  kPause,  // start() resumes it, files as they were
  kLeave,  // it lives on until its time is over; start() connects to it again
};

class CloudSandbox : public Sandbox {
 public:
  virtual std::string sandbox_id() const = 0;  // the service's; empty: not started
  // From now, longer or shorter. Errors: kFailedPrecondition, it does not run.
  virtual Result<void> set_timeout(std::chrono::milliseconds lifetime) = 0;
  // Whatever on_stop says. False: it was gone already.
  virtual Result<bool> kill() = 0;
};

}  // namespace belljar
