// Sandbox::watch of a live sandbox. See belljar/watch.h.
#pragma once

#include <memory>
#include <string>

#include "belljar/result.h"
#include "belljar/watch.h"
#include "session/live_instance.h"

namespace belljar::session {

// `path`: a directory of the workspace. Errors: those of Files::watch_dir; kInvalidArgument, no glob.
Result<std::unique_ptr<FileWatch>> open_watch(const std::shared_ptr<LiveInstance>& instance, const std::string& path,
                                              const WatchOptions& options);

}  // namespace belljar::session
