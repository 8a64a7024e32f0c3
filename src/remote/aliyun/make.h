// From options to the service that is asked.
#pragma once

#include <memory>

#include "belljar/aliyun.h"
#include "belljar/result.h"
#include "remote/aliyun/address.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

// Asks nobody yet. Errors: kUnauthenticated, no key; kInvalidArgument, an option that is none, or that the other route takes.
Result<std::shared_ptr<shell::Service>> make_service(const AliyunOptions& options, const Variables& environment);

}  // namespace belljar::remote::aliyun
