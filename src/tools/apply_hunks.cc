// Where a hunk fits, and the text with all hunks applied.
//
// A hunk is looked for at the line that it names, moved by how far off the hunk before it was, and then above
// and below in turn, nearest first. The context must match byte by byte. GNU patch(1) would also drop lines
// of context until something fits (fuzz). Here a hunk that does not fit is an error, which tells the first
// line that differs.
//
// A hunk never goes in front of the one before it: hunks are applied in order, each behind the last (next_),
// so two of them cannot fit the same lines. A hunk without old lines has no context at all and goes exactly
// where it says.
//
// Files in which everything is alike would make the search quadratic. The number of line comparisons is
// limited for the whole file (kPatience).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "tools/patch.h"
#include "tools/text.h"

namespace belljar::tools {
namespace {

// Comparisons of lines that one file may cost: a file of a million equal lines must not hold the call for hours.
constexpr std::uint64_t kPatience = 20'000'000;

class Applier {
 public:
  explicit Applier(std::string_view before) : file_(split_lines(before)) {}

  Result<PatchedText> apply(const FilePatch& patch) {
    for (const Hunk& hunk : patch.hunks) BELLJAR_CHECK(apply_one(hunk));
    copy_until(file_.lines.size());
    if (has_line_ && last_has_newline_) result_.text += '\n';
    return std::move(result_);
  }

 private:
  Result<void> apply_one(const Hunk& hunk) {
    const auto place = find(hunk);
    if (!place) {
      const bool tired = patience_ == 0;
      return Error(Code::kFailedPrecondition, format("the hunk of line {} does not fit", hunk.at))
          .reason(tired ? "too many places of the file are alike" : why_not(hunk))
          .next(tired ? "give it more context" : "read the file as it is now, and make the patch from that");
    }
    copy_until(*place);
    for (const PatchLine& line : hunk.lines) {
      if (line.kind == LineKind::kAdded) {
        put(line.text, line.has_newline);
        ++result_.added;
        continue;
      }
      // A line that stays keeps the file's own bytes.
      if (line.kind == LineKind::kContext) put(file_.lines[next_], newline_of(next_));
      else ++result_.removed;
      ++next_;
    }
    shift_ = static_cast<std::int64_t>(*place) - expected(hunk);
    return {};
  }

  // From 0, where the hunk says that it begins. "-3,0" inserts behind line 3.
  static std::int64_t expected(const Hunk& hunk) {
    return static_cast<std::int64_t>(hunk.old_start) - (hunk.old_count == 0 ? 0 : 1);
  }

  std::optional<std::size_t> find(const Hunk& hunk) {
    const auto least = static_cast<std::int64_t>(next_), most = static_cast<std::int64_t>(file_.lines.size());
    const std::int64_t wanted = std::clamp(expected(hunk) + shift_, least, most);
    if (hunk.old_count == 0) return static_cast<std::size_t>(wanted);
    for (std::int64_t away = 0; wanted - away >= least || wanted + away <= most; ++away) {
      for (const std::int64_t place : {wanted - away, wanted + away}) {
        if (place >= least && place <= most && fits(hunk, static_cast<std::size_t>(place))) return static_cast<std::size_t>(place);
        if (patience_ == 0) return {};
      }
    }
    return {};
  }

  bool fits(const Hunk& hunk, std::size_t place) {
    if (file_.lines.size() - place < hunk.old_count) return false;
    for (const PatchLine& line : hunk.lines) {
      if (line.kind == LineKind::kAdded) continue;
      if (patience_ == 0) return false;
      --patience_;
      if (file_.lines[place++] != line.text) return false;
    }
    return true;
  }

  // The first line that differs at the place where the hunk says it belongs.
  std::string why_not(const Hunk& hunk) const {
    auto at = static_cast<std::size_t>(std::max<std::int64_t>(expected(hunk) + shift_, 0));
    for (const PatchLine& line : hunk.lines) {
      if (line.kind == LineKind::kAdded) continue;
      if (at >= file_.lines.size()) return format("the file ends at line {}", file_.lines.size());
      if (file_.lines[at] != line.text)
        return format("line {} is {}, the patch has {}", at + 1, belljar::quoted(file_.lines[at].substr(0, 200)),
                      belljar::quoted(line.text.substr(0, 200)));
      ++at;
    }
    return "an earlier hunk reaches behind its place";
  }

  bool newline_of(std::size_t index) const { return index + 1 < file_.lines.size() || file_.ends_with_newline; }
  void copy_until(std::size_t end) {
    for (; next_ < end; ++next_) put(file_.lines[next_], newline_of(next_));
  }
  // A line without a newline gets one when another follows it.
  void put(std::string_view line, bool newline) {
    if (has_line_) result_.text += '\n';
    result_.text += line;
    has_line_ = true;
    last_has_newline_ = newline;
  }

  const Lines file_;
  std::size_t next_ = 0;    // of file_, the first line not yet copied
  std::int64_t shift_ = 0;  // how far off the last hunk was
  std::uint64_t patience_ = kPatience;
  bool has_line_ = false, last_has_newline_ = true;  // of what was put last; its newline is written with the next line
  PatchedText result_;
};

}  // namespace

Result<PatchedText> apply_hunks(std::string_view before, const FilePatch& patch) { return Applier(before).apply(patch); }

}  // namespace belljar::tools
