// The line to one container's pid 1: its attach stream, taken apart. A thread of its own reads; whoever waits for a command gets
// that command's records from a queue. Output under way is bounded for each command by its window, so a slow reader stops nobody
// else.
#pragma once

#include <linux/filter.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "backend/container/frames.h"
#include "backend/container/http.h"
#include "backend/container/records.h"
#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/cancel.h"
#include "belljar/result.h"

namespace belljar::backend::container {

struct ReceivedRecord {
  char type = 0;
  std::string payload;
  std::chrono::steady_clock::time_point at;
};

// What arrives for one command. Safe from any thread.
class Inbox {
 public:
  explicit Inbox(Wake wake) : wake_(std::move(wake)) {}
  void put(ReceivedRecord arrived);
  void close();                       // the line is gone
  std::deque<ReceivedRecord> take();  // all there is, and the descriptor is quiet again
  bool closed() const;
  int fd() const noexcept { return wake_.get(); }  // readable when there is something, or the line is gone

 private:
  Wake wake_;
  mutable std::mutex mutex_;
  std::deque<ReceivedRecord> arrived_;  // guarded by mutex_
  bool closed_ = false;                 // guarded by mutex_
};

class Channel {
 public:
  // Begins to read. `await_hello` tells when pid 1 is there.
  static Result<std::shared_ptr<Channel>> open(UpgradedStream attached);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Errors: kFailedPrecondition, it is not our program, or ended; kDeadlineExceeded; kCanceled. With what it said instead.
  Result<void> await_hello(std::chrono::milliseconds patience, const CancelToken& cancel = {});
  // A number for a new command and what will arrive for it. Errors: kUnavailable, the line is gone; kResourceExhausted.
  Result<std::pair<std::uint32_t, std::shared_ptr<Inbox>>> add_command();
  void drop_command(std::uint32_t id);
  // Errors: kUnavailable, with why the line is gone.
  Result<void> send(std::string_view records);
  // pid 1 answers. Errors: kUnavailable, also when `cancel_fd` (-1: none) is readable before.
  Result<void> ping(std::chrono::milliseconds patience, int cancel_fd = -1);
  // Commands from now on get this system call filter, last before execve(2). Errors: kFailedPrecondition, with the errno, pid 1
  // cannot install it; kUnavailable.
  Result<void> set_filter(std::span<const sock_filter> program, std::chrono::milliseconds patience);
  // What pid 1 sees mounted, as the record `m`. Errors: kUnavailable.
  Result<std::string> mounts(std::chrono::milliseconds patience);
  bool alive() const;
  // Why it is not alive: what the engine or pid 1 said last.
  std::string ended_because() const;
  void hang_up();
  // `process` is killed when the line is gone, whatever the reason. Invalid: nothing is.
  void kill_at_end(UniqueFd process);

 private:
  explicit Channel(Connection connection, Wake stop) : connection_(std::move(connection)), stop_(std::move(stop)) {}
  // The answer to a record of no command. Errors: kUnavailable.
  Result<ReceivedRecord> ask(char type, std::string_view payload, std::chrono::milliseconds patience, int cancel_fd = -1);
  void follow(const std::string& early);
  bool take(std::string_view bytes);
  void dispatch(char type, std::uint32_t id, std::string_view payload);
  void end(std::string because);
  void kill_process();        // under mutex_
  std::string noise() const;  // "; it said: ...", or nothing; under mutex_

  Connection connection_;
  Wake stop_;
  std::thread thread_;
  FrameParser frames_;    // of the reading thread
  RecordParser records_;  // of the reading thread
  bool failed_ = false;   // of the reading thread: the engine reports an error, and says it in its stream
  std::mutex write_mutex_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<Inbox>> inboxes_;  // guarded by mutex_
  std::uint32_t next_ = 1;                                   // guarded by mutex_
  bool alive_ = true;                                        // guarded by mutex_
  std::string because_;                                      // guarded by mutex_
  UniqueFd process_;                                         // guarded by mutex_
  std::string noise_;  // guarded by mutex_; stderr of pid 1, where a runtime puts why it could not start
};

}  // namespace belljar::backend::container
