// The audit trail: an append-only file of JSON lines, each chained to the one before by SHA-256, that
// survives a crash.
//
//   AuditTrail trail = BELLJAR_TRY(AuditTrail::open("/var/log/belljar/audit.jsonl"));
//   BELLJAR_CHECK(trail.append("exec", AuditFields().text("command", "make test").number("exit_code", 0)));
//   AuditVerification found = BELLJAR_TRY(verify_audit("/var/log/belljar/audit.jsonl"));
//
// Guarantees: a record that append() acknowledged is there after kill -9 of any writer, and with
// AuditSync::kEach after a power cut. At most the record in flight is lost; the next writer mends the torn
// end and says so in the trail. verify_audit() finds and locates a byte that was changed, and a line that was
// removed, added or moved.
//
// No guarantee: whoever may write the file can cut records off its end, or write the whole chain anew. Keep
// head() elsewhere from time to time and give it to verify_audit(). Records hold the values they are given:
// give them no secrets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/units.h"

namespace belljar {

// The fields of one record, in this order. A text is bytes. Bytes that are no UTF-8 become U+FFFD, and
// "NAME_hex" has the original. A text longer than kMaxText is cut, and "NAME_bytes" has its length. texts()
// is one list with the same limit: it is cut in the middle of an element, "NAME_omitted" counts the elements
// after that, and "NAME_sha256" is the hash of all elements, each followed by a NUL byte as in
// /proc/PID/cmdline. All of these describe the values as given here, after secrets were removed.
class AuditFields {
 public:
  static constexpr std::size_t kMaxText = 16'384;
  AuditFields& text(std::string_view name, std::string_view value) &;
  AuditFields& texts(std::string_view name, const std::vector<std::string>& values) &;
  AuditFields& number(std::string_view name, std::int64_t value) &;
  AuditFields& boolean(std::string_view name, bool value) &;
  AuditFields&& text(std::string_view name, std::string_view value) && { return std::move(text(name, value)); }
  AuditFields&& texts(std::string_view name, const std::vector<std::string>& values) && { return std::move(texts(name, values)); }
  AuditFields&& number(std::string_view name, std::int64_t value) && { return std::move(number(name, value)); }
  AuditFields&& boolean(std::string_view name, bool value) && { return std::move(boolean(name, value)); }
  // One JSON object.
  std::string json() const { return "{" + members_ + "}"; }

 private:
  void name(std::string_view name);
  std::string members_;
};

enum class AuditSync {
  kEach,   // fdatasync(2) before append() returns: safe from a power cut
  kEvery,  // at most once in AuditOptions::sync_interval
  kNever,  // when the kernel likes: safe from kill -9, not from a power cut
};

// The time of a record, by two clocks. The boot-time clock runs on when the wall clock is set, and while the
// machine sleeps.
struct AuditTime {
  std::chrono::system_clock::time_point wall;
  std::chrono::nanoseconds since_boot{0};
  std::string boot;  // names the boot: since_boot compares only within one
};

struct AuditOptions {
  AuditSync sync = AuditSync::kEach;
  std::chrono::milliseconds sync_interval{1000};
  // A file that has reached this size is kept as FILE.000001 (and so on), and the chain goes on in a new FILE. Unset: never; 0 is
  // kInvalidArgument.
  std::optional<Bytes> rotate_at;
  // How many such files are kept; older ones are deleted, and the trail says so. Unset: all.
  std::optional<unsigned> keep;
  // How long append() waits while other processes write. Then kUnavailable.
  std::chrono::milliseconds patience{5000};
  std::function<AuditTime()> clock;  // for tests; unset: the system's
};

// Where a chain has arrived: "12:9f86d0…", the last record's number and hash.
struct AuditHead {
  std::uint64_t sequence = 0;
  std::string hash;  // 64 hexadecimal digits
  bool operator==(const AuditHead&) const = default;
};
std::string to_string(const AuditHead& head);
// Errors: kInvalidArgument.
Result<AuditHead> parse_audit_head(std::string_view text);

// Any number of processes and threads may append to one trail: each append locks the file (flock(2)), mends a torn end that a
// killed writer left, and writes its line with one write(2). After a fork(2) parent and child may both go on with one that was
// open, unless another thread was appending at that moment: the child's copy then waits for ever.
class AuditTrail {
 public:
  // Makes the file (mode 0600, its directory must exist) or goes on with it. Errors: kInvalidArgument, it is no regular file;
  // kPermissionDenied, it is not ours, or others may write it; kDataLoss, its last record is damaged; kResourceExhausted, disk
  // full.
  static Result<AuditTrail> open(std::string path, AuditOptions options = {});
  AuditTrail(AuditTrail&&) noexcept;
  AuditTrail& operator=(AuditTrail&&) noexcept;
  ~AuditTrail();

  // One record. `kind`: a word of ours, [a-z.-]+. Returns its number. Errors: kResourceExhausted, there is no room (nothing of it
  // was left in the file); kUnavailable; kDataLoss, somebody else damaged the end of the file, cut off records that we know were
  // there, or took the file away. Safe from any thread.
  Result<std::uint64_t> append(std::string_view kind, const AuditFields& fields);
  // Whether the next records will find room: takes 64 KiB of the disk ahead, where the file system can. For "no record, no work":
  // call it before the work. Errors: kResourceExhausted.
  Result<void> reserve();
  AuditHead head() const;
  const std::string& path() const noexcept;

 private:
  struct State;
  explicit AuditTrail(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct AuditProblem {
  std::string file;
  std::uint64_t line = 0;      // from 1
  std::uint64_t offset = 0;    // of the line's first byte
  std::uint64_t sequence = 0;  // the record's number, as it should be
  std::string what;
  bool operator==(const AuditProblem&) const = default;
};

struct AuditVerification {
  std::uint64_t records = 0;
  std::uint64_t first_sequence = 0;  // not 0: older files were deleted
  AuditHead head;
  std::vector<AuditProblem> problems;  // at most 100
  std::uint64_t torn_bytes = 0;        // of a record in flight at the end, which nobody has mended yet: no problem
  std::uint64_t mended = 0;            // torn ends that were mended
  std::uint64_t clock_jumps = 0;
  std::uint64_t files = 0;
  bool intact() const noexcept { return problems.empty(); }
};

// Reads the rotated files and `path`, in order. `expected`: a head that was noted earlier and must be part of the chain. Errors:
// kNotFound, kPermissionDenied, kInvalidArgument; damage is no error but a problem.
Result<AuditVerification> verify_audit(const std::string& path, const std::optional<AuditHead>& expected = {});

// Calls `each` with every whole line, oldest first, without judging it; until it returns false.
Result<void> read_audit(const std::string& path, const std::function<bool(std::string_view line)>& each);

}  // namespace belljar
