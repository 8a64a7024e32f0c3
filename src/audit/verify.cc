// Verifying a trail: the hash chain, the numbers, and what rotations say they deleted.
//
// Each line is checked against its own hash and against the hash of the line before. After a line that is no
// record, the chain is taken up again with the next one, so that a single damaged byte is one problem and not
// one for every line after it.
//
// Records that are missing at the front are no damage if a rotation deleted them. The first record that is
// left must then be a rotation's, and rotations say which record the trail is kept from; a killed writer may
// have left more files than that, which is no loss. At the end only bytes that can be the beginning of a
// record are excused.
//
// Somebody who can write the file can compute a whole new chain. Against that only a head that was noted
// elsewhere helps: `expected`.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/files.h"
#include "audit/line.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/audit.h"
#include "belljar/result.h"

namespace belljar {
namespace {

constexpr std::size_t kMostProblems = 100;

struct LineLocation {
  std::string file;
  std::uint64_t line = 0, offset = 0;
};

class Verifier {
 public:
  explicit Verifier(const std::optional<AuditHead>& expected) : expected_(expected) {}

  void check_line(const LineLocation& location, std::string_view line) {
    const audit::Parsed parsed = audit::parse(line);
    ++found_.records;
    if (parsed.broken == audit::Broken::kForm) {
      complain(location, "this is no record as it was written");
      next_ = next_.value_or(0) + 1;
      hash_.reset();  // what it was cannot be known; the next one is taken at its word
      return;
    }
    if (!next_) begin(location, parsed.head);
    else if (parsed.head.sequence != *next_)
      complain(location, format("record {} stands where record {} should: records are missing, added or moved",
                                parsed.head.sequence, *next_));
    if (parsed.broken == audit::Broken::kHash) complain(location, "the record's bytes do not fit its hash: it was changed");
    else if (hash_ && parsed.head.prev != *hash_) complain(location, "the record does not follow the one before it");
    count(parsed.head);
    if (parsed.head.kind == "rotated") note_rotation(parsed.data);
    next_ = parsed.head.sequence + 1;
    hash_ = parsed.head.hash;
    found_.head = {parsed.head.sequence, parsed.head.hash};
    if (expected_ && expected_->sequence == parsed.head.sequence) {
      met_ = true;
      if (expected_->hash != parsed.head.hash)
        complain(location, "the record is not the one whose hash was noted: the trail was written anew");
    }
  }

  void check_tail(const LineLocation& location, std::string_view tail, bool last_file) {
    if (tail.empty()) return;
    if (last_file && audit::is_torn_record(tail)) found_.torn_bytes = tail.size();
    else complain(location, "there is something that is no record");
  }

  AuditVerification finish(const std::string& path, std::uint64_t files) {
    found_.files = files;
    const std::uint64_t first = found_.first_sequence;
    // Files that a killed writer had no time to delete are no loss.
    if (first > 0 && deleted_since_ == 0 && !(kept_from_ && first <= *kept_from_) && began_as_rotated_)
      complain(began_, "the records before this one are missing, and no rotation deleted them", first);
    if (expected_ && !met_) complain({path, 0, 0}, format("record {} is not there: records were cut off", expected_->sequence));
    return std::move(found_);
  }

 private:
  void begin(const LineLocation& location, const audit::Head& head) {
    found_.first_sequence = head.sequence;
    next_ = head.sequence;
    if (head.sequence == 0 && head.prev != audit::kNoHash) complain(location, "the first record follows another one");
    // Only a rotation deletes files, and then the first that is left begins with it.
    began_ = location;
    began_as_rotated_ = head.kind == "rotated";
    if (head.sequence != 0 && !began_as_rotated_) complain(location, "the records before this one are missing");
  }

  // Each rotation says from which record on the trail was kept. Older versions said only how many files they deleted.
  void note_rotation(std::string_view data) {
    const auto fields = nlohmann::json::parse(data, nullptr, /*allow_exceptions=*/false);
    const auto number = [&](const char* name) -> std::optional<std::uint64_t> {
      const auto found = fields.find(name);
      if (!fields.is_object() || found == fields.end() || !found->is_number_unsigned()) return {};
      return found->get<std::uint64_t>();
    };
    if (const auto kept_from = number("first")) {
      kept_from_ = kept_from;
      deleted_since_ = 0;
    } else {
      deleted_since_ += number("deleted").value_or(0);
    }
  }

  void count(const audit::Head& head) {
    if (head.kind == "mended") ++found_.mended;
    if (head.kind == "clock") ++found_.clock_jumps;
  }

  void complain(const LineLocation& location, std::string what) { complain(location, std::move(what), next_.value_or(0)); }
  void complain(const LineLocation& location, std::string what, std::uint64_t sequence) {
    if (found_.problems.size() == kMostProblems) return;
    found_.problems.push_back({location.file, location.line, location.offset, sequence, std::move(what)});
  }

  const std::optional<AuditHead>& expected_;
  AuditVerification found_;
  std::optional<std::uint64_t> next_;  // number of the record that comes next
  std::optional<std::string> hash_;    // of the record before
  bool met_ = false;
  LineLocation began_;
  bool began_as_rotated_ = false;
  std::optional<std::uint64_t> kept_from_;  // as the last rotation that knew said
  std::uint64_t deleted_since_ = 0;         // files, by rotations that did not know
};

// Calls each(location, line) and, for what is behind the last newline, tail(location, bytes, is_last_file). False from each: stop.
template <class Each, class Tail>
Result<std::uint64_t> walk(const std::string& path, Each each, Tail tail) {
  std::vector<std::string> files;
  for (audit::OldFile& old : BELLJAR_TRY(audit::find_old(path))) {
    if (!audit::same_file(old.path, path)) files.push_back(std::move(old.path));
  }
  files.push_back(path);
  for (const std::string& name : files) {
    const UniqueFd file = BELLJAR_TRY(audit::open_to_read(name));
    audit::Lines lines(file.get());
    LineLocation location{name, 0, 0};
    std::string line;
    while (BELLJAR_TRY(lines.next(line))) {
      ++location.line;
      location.offset = lines.offset();
      if (!each(location, line)) return files.size();
    }
    ++location.line;
    location.offset = lines.offset();
    tail(location, lines.tail(), &name == &files.back());
  }
  return files.size();
}

}  // namespace

Result<AuditVerification> verify_audit(const std::string& path, const std::optional<AuditHead>& expected) {
  Verifier verifier(expected);
  const std::uint64_t files = BELLJAR_TRY(walk(
      path, [&](const LineLocation& location, std::string_view line) { return verifier.check_line(location, line), true; },
      [&](const LineLocation& location, std::string_view tail, bool last) { verifier.check_tail(location, tail, last); }));
  return verifier.finish(path, files);
}

Result<void> read_audit(const std::string& path, const std::function<bool(std::string_view line)>& each) {
  BELLJAR_TRY(walk(
      path, [&](const LineLocation&, std::string_view line) { return each(line); },
      [](const LineLocation&, std::string_view, bool) {}));
  return {};
}

}  // namespace belljar
