// The events of one kept sandbox: the last part of them in memory for readers while it lives, the same in files for later ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/events.h"
#include "belljar/redact.h"
#include "belljar/result.h"

namespace belljar::keeper {

// The files of the log in a sandbox's directory, the older one first.
inline constexpr const char* kOlderLog = "events.1.jsonl";
inline constexpr const char* kLog = "events.jsonl";
// Of each of the two files, and of memory. What is older is dropped and counted.
inline constexpr std::size_t kLogBytes = 256U << 10;
// Bytes of a command's text that are kept.
inline constexpr std::size_t kCommandBytes = 2048;

// Safe from any thread.
class EventLog final : public EventSink {
 public:
  // Writes into the directory `directory`; what `secrets` knows is in no line. Errors: kUnavailable, kResourceExhausted.
  static Result<std::shared_ptr<EventLog>> open(UniqueFd directory, std::string sandbox, Redactor secrets);

  // Sets number, time and the sandbox's id. Never blocks on a reader; a full disk costs the file's line, not memory's.
  void publish(Event event) noexcept override;

  struct Lines {
    std::vector<std::string> lines;  // JSON objects (to_json of events.h)
    std::uint64_t next = 0;          // to go on from
    std::uint64_t lost = 0;          // between `from` and the first line
  };
  // All from number `from` on. When there is none yet, waits for the next one for at most `patience`.
  Lines read(std::uint64_t from, std::chrono::milliseconds patience);
  // No reader waits any more.
  void close();

 private:
  EventLog(UniqueFd directory, std::string sandbox, Redactor secrets)
      : directory_(std::move(directory)), sandbox_(std::move(sandbox)), secrets_(std::move(secrets)) {}
  Result<void> open_file();
  void hide_secrets(Event& event) const;
  void write_line(const std::string& line);

  const UniqueFd directory_;
  const std::string sandbox_;
  const Redactor secrets_;
  std::mutex mutex_;
  std::condition_variable grown_;
  // guarded by mutex_
  UniqueFd file_;
  std::size_t file_bytes_ = 0, memory_bytes_ = 0;
  std::deque<std::string> lines_;
  std::uint64_t next_ = 0;
  bool closed_ = false;
};

}  // namespace belljar::keeper
