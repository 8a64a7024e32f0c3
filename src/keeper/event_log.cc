// The log of a kept sandbox, bounded in memory and on disk. Lines are numbered from the start and
// never renumbered, so a reader that comes back with its last number learns how many lines it
// missed: the deque holds the last of them, and the number of the first is the next number minus
// the deque's size.
//
// On disk there are two files. When the newer one is full it replaces the older one by rename(2),
// so the disk holds about twice kLogBytes at most. To cut the head off one file would mean to
// rewrite it for each line. A failure of the file is not told: the log must not be the reason why a
// command fails, and who asks while the sandbox lives is answered from memory.
//
// Secrets are taken out before the text is shortened: a secret that the cut had halved would not be
// recognised any more.
#include "keeper/event_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/redact.h"
#include "belljar/result.h"

namespace belljar::keeper {
namespace {

void shorten(std::string& text) {
  if (text.size() <= kCommandBytes) return;
  const std::size_t cut = text.size() - kCommandBytes;
  text.resize(kCommandBytes);
  text += format("... ({} bytes more)", cut);
}

}  // namespace

Result<std::shared_ptr<EventLog>> EventLog::open(UniqueFd directory, std::string sandbox, Redactor secrets) {
  std::shared_ptr<EventLog> log(new EventLog(std::move(directory), std::move(sandbox), std::move(secrets)));
  BELLJAR_CHECK(log->open_file());
  return log;
}

Result<void> EventLog::open_file() {
  file_ = UniqueFd(::openat(directory_.get(), kLog, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat status{};
  file_bytes_ = ::fstat(file_.get(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
  if (file_.valid()) return {};
  return Error(Code::kUnavailable, "cannot make the sandbox's log").sys(errno, "openat");
}

void EventLog::hide_secrets(Event& event) const {
  if (auto* execution = std::get_if<ExecutionEvent>(&event.body)) {
    execution->command = secrets_(execution->command);
    execution->error = secrets_(execution->error);
  } else if (auto* refused = std::get_if<ViolationEvent>(&event.body)) {
    refused->violation.target = secrets_(refused->violation.target);
  } else if (auto* egress = std::get_if<EgressEvent>(&event.body)) {
    egress->record.host = secrets_(egress->record.host);
  } else if (auto* lifecycle = std::get_if<LifecycleEvent>(&event.body)) {
    lifecycle->detail = secrets_(lifecycle->detail);
  }
}

void EventLog::publish(Event event) noexcept {
  hide_secrets(event);
  const std::lock_guard lock(mutex_);
  event.sequence = next_++;
  event.time = std::chrono::system_clock::now();
  event.sandbox = sandbox_;
  if (auto* execution = std::get_if<ExecutionEvent>(&event.body)) shorten(execution->command);
  lines_.push_back(to_json(event));
  memory_bytes_ += lines_.back().size();
  write_line(lines_.back());
  while (memory_bytes_ > kLogBytes && lines_.size() > 1) {
    memory_bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
  grown_.notify_all();
}

void EventLog::write_line(const std::string& line) {
  if (file_bytes_ > 0 && file_bytes_ + line.size() > kLogBytes) {
    ::renameat(directory_.get(), kLog, directory_.get(), kOlderLog);
    file_.reset();
  }
  if (!file_.valid() && !open_file()) return;  // tried again with the next line: a disk may be full for a while
  const std::string text = line + "\n";
  const ssize_t wrote = ::write(file_.get(), text.data(), text.size());
  if (wrote == static_cast<ssize_t>(text.size())) file_bytes_ += text.size();
  else if (wrote > 0) std::ignore = ::ftruncate(file_.get(), static_cast<off_t>(file_bytes_));  // no half of a line
}

EventLog::Lines EventLog::read(std::uint64_t from, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  grown_.wait_for(lock, patience, [&] { return next_ > from || closed_; });
  const std::uint64_t first = next_ - lines_.size();
  Lines result;
  result.next = next_;
  if (from < first) result.lost = first - std::exchange(from, first);
  for (std::uint64_t n = from; n < next_; ++n) result.lines.push_back(lines_[static_cast<std::size_t>(n - first)]);
  return result;
}

void EventLog::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  grown_.notify_all();
}

}  // namespace belljar::keeper
