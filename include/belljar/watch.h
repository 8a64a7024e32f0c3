// What happens to files of a sandbox's workspace, as it happens: whoever does it, a command inside, a file call or the host.
//
//   std::unique_ptr<FileWatch> watch = BELLJAR_TRY(sandbox->watch("src", {.files = "**/*.cc"}));
//   for (const FileChange& change : BELLJAR_TRY(watch->next(1s))) ...
//
// Told by the kernel (inotify(7)), with its limits: what is written through mmap(2) is not seen, and a change of one file that
// repeats is told once a batch.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/files.h"
#include "belljar/result.h"

namespace belljar {

enum class ChangeKind {
  kCreated,  // or moved to here
  kChanged,  // content, mode, times or attributes
  kRemoved,  // or moved away from here
  kLost,     // more happened than could be kept, and `path` is empty: look at the files again
};

struct FileChange {
  ChangeKind kind = ChangeKind::kChanged;
  std::string path;                 // relative to the workspace
  FileType type = FileType::kFile;  // kDirectory or kFile; of what is not a directory nothing more is known
  bool operator==(const FileChange&) const = default;
};

struct WatchOptions {
  std::string files = "**";          // which of them, a glob relative to the workspace; directories are followed in any case
  std::size_t max_changes = 10'000;  // of one batch; the rest comes with the next
  CancelToken cancel;                // next() ends with kCanceled
};

// A resource: an inotify instance (fs.inotify.max_user_instances) and a watch for each directory (max_user_watches). One thread at
// a time. It may outlive the sandbox.
class FileWatch {
 public:
  FileWatch() = default;
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  virtual ~FileWatch() = default;

  // What happened since the last call, in order; waits up to `patience` for something. Empty: nothing came in that time. Of a
  // directory that appears, what lies in it by then is told as created.
  // Errors: kFailedPrecondition, the sandbox does not run; kNotFound, the directory itself is gone; kCanceled; kResourceExhausted,
  // no watch is free for a new directory.
  virtual Result<std::vector<FileChange>> next(std::chrono::milliseconds patience) = 0;
};

}  // namespace belljar
