// Arguments and results of the file calls of a Sandbox. Values.
//
// A path is relative to the workspace, or absolute and below it, under its canonical name or the one it was
// given, or absolute and at or below another directory that the policy opens by name (Sandbox::roots), which
// links and ".." may lead into as well. The kernel resolves paths beneath these (openat2(2),
// RESOLVE_BENEATH): no "..", symbolic link or race leads out. A path that would is refused with
// kInvalidArgument and "path escapes workspace: ...". A file is writable, read-only or hidden as it is for
// commands. Names and contents are bytes: nothing is decoded, nothing is translated.
//
// A call that is cancelled, or whose deadline has passed, does nothing. A call that is under way ends with
// kCanceled or kDeadlineExceeded:
//   native, landlock, local, container: files are reached by system calls of this machine, which wait for no FIFO, device or
//     socket. The call can end between two parts of a large read, an atomic write, a list, or the removal of a tree (a part of
//     which may be gone then, as the error says); kReplace and kAppend, once begun, are completed. A single system call on a file
//     system that does not answer (a dead network mount) cannot be ended. The wait for another call of the sandbox (start()) can.
//   clouds: the wait for the service ends within a second or two, and a command of ours inside is told to end. The error of a call
//     that changes something says that it may have been done all the same, or in part: only the answer would have told. With
//     kAtomic the file is the old one or the new one in any case.
//   mock: nothing waits. A replay answers as it was recorded.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/units.h"

namespace belljar {

enum class FileType { kFile, kDirectory, kSymlink, kOther };

struct FileInfo {
  std::string path;  // list: the name; stat: as it was asked for; glob: relative to the workspace, or as absolute as the pattern
  FileType type = FileType::kFile;
  std::uint64_t size = 0;
  unsigned mode = 0;  // permission bits
  std::chrono::system_clock::time_point modified;
  std::string target;  // of a symbolic link
  // When its content, mode or name was last changed, by the kernel's clock (st_ctime): no command can set it back, as it can set
  // `modified`. Unset: this backend cannot tell.
  std::optional<std::chrono::system_clock::time_point> changed;
  bool operator==(const FileInfo&) const = default;
};

struct ReadOptions {
  std::uint64_t offset = 0;
  // Reads at most this many bytes. Unset: the whole file, and one larger than 256 MiB is refused (kOutOfRange).
  std::optional<std::uint64_t> limit;
  CallOptions call;
};

enum class Parents { kCreate, kMustExist };
enum class WriteMode {
  kReplace,  // the file is made, or overwritten from its start and cut; readers meanwhile see some of both
  kAppend,   // at the end, each call in one piece as far as write(2) goes
  kAtomic,   // beside it under another name, then renamed: readers see all of the old or all of the new
};

struct WriteOptions {
  WriteMode how = WriteMode::kReplace;
  // Permission bits for the file, 0000-0777 (setuid, setgid and sticky are refused). Unset: an existing file keeps its own, a new
  // one gets 0666 less the umask.
  std::optional<unsigned> mode;
  Parents parents = Parents::kCreate;
  CallOptions call;
};

struct MakeDirOptions {
  std::optional<unsigned> mode;  // unset: 0777 less the umask
  // kCreate: as mkdir -p, an existing directory is fine. kMustExist: as mkdir, an existing one is kAlreadyExists.
  Parents parents = Parents::kCreate;
  CallOptions call;
};

enum class Depth { kOne, kTree };
struct RemoveOptions {
  Depth depth = Depth::kOne;  // kOne: a file, a link or an empty directory
  CallOptions call;
};

// A pattern is relative to the workspace, or absolute and below it or a further root: `*` and `?` stay within a name, `**` spans
// directories, [a-z] and [!a-z] are classes. `..`, backslashes, braces, [^...] and [[:...:]] are refused.
//
// glob and grep walk the tree below the workspace, or of that root, without following links, and look neither at devices nor at
// FIFOs.
struct WalkOptions {
  std::size_t max_results = 10'000;
  std::chrono::milliseconds timeout{30'000};  // what was found until then is returned, with `complete` false
  CancelToken cancel;                         // as the timeout
};

struct GlobResult {
  std::vector<FileInfo> files;  // sorted by path
  bool complete = true;         // false: max_results, the timeout or a cancellation ended the walk
};

enum class Case { kSensitive, kIgnoreAscii };
struct GrepOptions {
  std::string files = "**";  // which files, a glob relative to the workspace
  Case letters = Case::kSensitive;
  WalkOptions walk;
};

struct GrepMatch {
  std::string path;        // relative to the workspace, or as absolute as the pattern
  std::uint64_t line = 0;  // from 1
  std::string text;        // the line without its end, at most 1000 bytes
  bool operator==(const GrepMatch&) const = default;
};

struct GrepResult {
  std::vector<GrepMatch> matches;  // by path, then line
  bool complete = true;
};

}  // namespace belljar
