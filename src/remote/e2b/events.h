// Reads the messages of the daemon in a sandbox into values. No I/O. Fuzzed: fuzz/remote_frames.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/files.h"
#include "belljar/result.h"

namespace belljar::remote::e2b {

enum class EventKind { kStart, kStdout, kStderr, kEnd, kOther };  // a terminal's output is kStdout; kOther: keepalive, or new to us

struct Event {
  EventKind kind = EventKind::kOther;
  std::uint32_t pid = 0;  // of kStart
  std::string bytes;      // of the output
  int exit_code = 0;      // of kEnd
  int signal = 0;         // of kEnd; 0: it exited
};

// Errors: kDataLoss, no event.
Result<Event> parse_event(std::string_view json);

// The complaint of a unary call or of the end of a stream: Connect's code, or an HTTP status as a number. nullopt: nothing.
struct Complaint {
  Code code = Code::kUnknown;
  std::string message;
};
std::optional<Complaint> parse_complaint(std::string_view json);
// As the last frame of a stream holds it, in `error`. Errors: kDataLoss, no JSON object.
Result<std::optional<Complaint>> parse_last(std::string_view json);

struct Entry {
  FileInfo info;     // its path is the name
  std::string path;  // absolute
};
// Errors: kDataLoss.
Result<Entry> parse_entry(std::string_view json);                 // of {"entry": ...}
Result<std::vector<Entry>> parse_entries(std::string_view json);  // of {"entries": [...]}

}  // namespace belljar::remote::e2b
