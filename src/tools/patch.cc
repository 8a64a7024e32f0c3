// Unified diffs as models and git write them, read into a value.
//
// Text around the diffs is skipped (the mail of `git format-patch`), so the parser looks for the beginning of
// a file: `diff --git`, or `---` followed by `+++`. Inside a hunk nothing is skipped. The counts in its
// header decide how many lines belong to it, which is the only way to know that a line beginning with `--- `
// is a removed one and not the next file.
//
// Prefixes (`a/`, `b/`) are a habit and not part of the name. They are taken off only if both sides have
// them, or the side that names a file has. In git's extended headers names are complete and without prefixes
// (`rename from`), so they win over the `---` lines.
//
// What could not be done faithfully is refused by name: binary patches, symbolic links, submodules, modes
// that git does not write.
#include "tools/patch.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "tools/patch_names.h"
#include "tools/text.h"

namespace belljar::tools {
namespace {

constexpr std::string_view kNoFile = "/dev/null";
constexpr std::uint64_t kMostLines = 1U << 30;  // no count of a real hunk, and sums of two do not overflow

Error broken(std::size_t line, std::string what, std::string next) {
  return Error(Code::kInvalidArgument, format("cannot read the patch: line {}: {}", line, what)).next(std::move(next));
}

Error unsupported(std::size_t line, std::string_view what) {
  return Error(Code::kUnimplemented, format("cannot apply the patch: line {}: {}", line, what))
      .reason("only text is patched")
      .next("leave that file out of the patch, and make it with bash or write_file");
}

// "12" or "12,3" at the front of `text`, taken off.
bool consume_range(std::string_view& text, std::uint64_t& start, std::uint64_t& count) {
  const auto number = [&](std::uint64_t& value) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || value > kMostLines) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  count = 1;
  if (!number(start)) return false;
  if (!text.starts_with(',')) return true;
  text.remove_prefix(1);
  return number(count);
}

bool consume(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// "From SHA Mon Sep 17 ..." of git-format-patch(1), "commit SHA" of git-log(1).
bool begins_commit(std::string_view line) {
  if (!consume(line, "From ") && !consume(line, "commit ")) return false;
  const std::string_view name = line.substr(0, line.find(' '));
  return (name.size() == 40 || name.size() == 64) && is_small_hex(name);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lines_(split_lines(text).lines) {}

  Result<std::vector<FilePatch>> parse() {
    while (at_ < lines_.size()) {
      const std::string_view line = header();
      if (line.starts_with("diff --git ")) BELLJAR_CHECK(read_git_file());
      else if (is_plain_header()) BELLJAR_CHECK(read_plain_file());
      else if (line.starts_with("@@"))
        return broken(at_ + 1, "a hunk without a file", "begin each file with `--- a/NAME` and `+++ b/NAME`");
      else commit_ += begins_commit(line) ? 1 : 0, ++at_;
    }
    if (files_.empty())
      return Error(Code::kInvalidArgument, "cannot read the patch: there is no diff in it")
          .next("write a unified diff: `--- a/NAME`, `+++ b/NAME`, `@@ -1,3 +1,4 @@`, then lines that begin with a blank, - or +");
    return std::move(files_);
  }

 private:
  // A line of a header, as it is in a file with CRLF, too.
  std::string_view header(std::size_t ahead = 0) const {
    std::string_view line = at_ + ahead < lines_.size() ? lines_[at_ + ahead] : std::string_view();
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  bool is_plain_header() const { return header().starts_with("--- ") && header(1).starts_with("+++ "); }

  Result<void> read_plain_file() {
    FilePatch file;
    file.at = at_ + 1;
    BELLJAR_CHECK(read_names(file));
    if (!file.from && !file.to) return broken(file.at, "both sides are /dev/null", "name the file");
    // A file under two names is the new one: "--- x.orig", "+++ x".
    if (file.from && file.to) file.from = file.to;
    return read_hunks(std::move(file), false);
  }

  // "--- a/x" and "+++ b/x".
  Result<void> read_names(FilePatch& file) {
    auto from = name_of_header(header().substr(4)), to = name_of_header(header(1).substr(4));
    if (!from || !to || from->empty() || to->empty())
      return broken(at_ + 1, "a name that cannot be read", "quote it as git does, or not at all");
    at_ += 2;
    const bool is_new = *from == kNoFile, is_gone = *to == kNoFile;
    const bool prefixed = (is_new || from->starts_with("a/")) && (is_gone || to->starts_with("b/"));
    const auto bare = [&](const std::string& name) { return prefixed ? without_first(name).value_or(name) : name; };
    file.from = is_new ? std::nullopt : std::optional(bare(*from));
    file.to = is_gone ? std::nullopt : std::optional(bare(*to));
    return {};
  }

  Result<void> read_git_file() {
    FilePatch file;
    file.at = at_ + 1;
    const auto names = names_of_git_line(header().substr(std::string_view("diff --git ").size()));
    if (names) file.from = names->first, file.to = names->second;
    Extended extended;
    for (++at_; at_ < lines_.size() && !is_plain_header(); ++at_) {
      if (!BELLJAR_TRY(read_extended(file, extended))) break;
    }
    const bool has_names = is_plain_header();
    if (has_names) {
      const FilePatch told = file;
      BELLJAR_CHECK(read_names(file));
      if (extended.renamed) file.from = told.from, file.to = told.to;  // without prefixes, in any dialect
    }
    if (extended.added) file.from.reset();
    if (extended.deleted) file.to.reset();
    if (!file.from && !file.to) return broken(file.at, "a file without a name", "add `--- a/NAME` and `+++ b/NAME`");
    if (file.from && file.to && *file.from != *file.to && !extended.renamed)
      return broken(file.at, "two names, but neither `rename from` nor `copy from`", "add those lines, or use one name");
    const bool says_all = !has_names && (file.new_mode || extended.added || extended.deleted || extended.renamed);
    return read_hunks(std::move(file), says_all);
  }

  struct Extended {
    bool added = false, deleted = false, renamed = false;
  };
  // One extended header (git-diff(1), "Generating patch text with -p"); false: it is none.
  Result<bool> read_extended(FilePatch& file, Extended& extended) {
    std::string_view line = header();
    if (consume(line, "new file mode ")) return extended.added = true, read_mode(file, line);
    if (consume(line, "deleted file mode ")) return extended.deleted = true, read_mode(file, line);
    if (consume(line, "new mode ")) return read_mode(file, line);
    if (consume(line, "old mode ") || consume(line, "similarity index ") || consume(line, "dissimilarity index ") ||
        consume(line, "index "))
      return true;
    if (line.starts_with("GIT binary patch") || line.starts_with("Binary files ")) return unsupported(at_ + 1, "a binary patch");
    const bool copies = line.starts_with("copy ");
    if (consume(line, "rename from ") || consume(line, "copy from "))
      return read_moved_name(file.from, file, extended, line, copies);
    if (consume(line, "rename to ") || consume(line, "copy to ")) return read_moved_name(file.to, file, extended, line, copies);
    return false;
  }

  Result<bool> read_moved_name(std::optional<std::string>& side, FilePatch& file, Extended& extended, std::string_view name,
                               bool copies) {
    side = unquote_name(name);
    if (!side || side->empty()) return broken(at_ + 1, "a name that cannot be read", "quote it as git does, or not at all");
    extended.renamed = true;
    file.copies = file.copies || copies;
    return true;
  }

  Result<bool> read_mode(FilePatch& file, std::string_view text) {
    if (text == "120000") return unsupported(at_ + 1, "a symbolic link");
    if (text == "160000") return unsupported(at_ + 1, "a submodule");
    if (text != "100644" && text != "100755" && text != "100664")
      return broken(at_ + 1, format("the mode {}", belljar::quoted(text.substr(0, 20))), "use 100644 or 100755");
    file.new_mode = text == "100755" ? 0755U : 0644U;
    return true;
  }

  // `says_all`: the headers name a change of their own, and no hunk need follow.
  Result<void> read_hunks(FilePatch file, bool says_all) {
    while (header().starts_with("@@")) file.hunks.push_back(BELLJAR_TRY(read_hunk()));
    // One line too many in a hunk would otherwise be passed over as text between diffs.
    const std::string_view next = header();
    const bool goes_on = next.starts_with('+') || next.starts_with('-') || next.starts_with(' ');
    const bool is_left = goes_on && next != "-- " && next != "--" && !is_plain_header();
    if (!file.hunks.empty() && is_left)
      return broken(at_ + 1, "the hunk goes on behind the lines that its `@@` counts", "count its lines again");
    if (header().starts_with("GIT binary patch") || header().starts_with("Binary files "))
      return unsupported(at_ + 1, "a binary patch");
    if (file.hunks.empty() && (is_left || !says_all))
      return broken(file.at, "a file without a hunk", "write `@@ -START,COUNT +START,COUNT @@` before its changed lines");
    file.commit = commit_;
    files_.push_back(std::move(file));
    return {};
  }

  Result<Hunk> read_hunk() {
    Hunk hunk;
    hunk.at = at_ + 1;
    std::string_view line = header();
    const bool fine = consume(line, "@@ -") && consume_range(line, hunk.old_start, hunk.old_count) && consume(line, " +") &&
                      consume_range(line, hunk.new_start, hunk.new_count) && consume(line, " @@");
    if (!fine) return broken(hunk.at, "no `@@ -START,COUNT +START,COUNT @@`", "write the numbers of both sides");
    ++at_;
    std::uint64_t old_left = hunk.old_count, new_left = hunk.new_count;
    while (old_left > 0 || new_left > 0 || (at_ < lines_.size() && lines_[at_].starts_with('\\'))) {
      if (at_ == lines_.size())
        return broken(hunk.at, format("the hunk ends {} old and {} new lines early", old_left, new_left), "count its lines again");
      BELLJAR_CHECK(read_line(hunk, old_left, new_left));
      ++at_;
    }
    return hunk;
  }

  Result<void> read_line(Hunk& hunk, std::uint64_t& old_left, std::uint64_t& new_left) {
    const std::string_view line = lines_[at_];
    if (line.starts_with('\\')) {
      if (hunk.lines.empty()) return broken(at_ + 1, "`\\` before any line", "it belongs behind the line without a newline");
      hunk.lines.back().has_newline = false;
      return {};
    }
    // Editors consume the blank off an empty line.
    const char mark = line.empty() || line == "\r" ? ' ' : line[0];
    const LineKind kind = mark == '+' ? LineKind::kAdded : mark == '-' ? LineKind::kRemoved : LineKind::kContext;
    const bool fits = (mark == ' ' || mark == '+' || mark == '-') && (kind == LineKind::kAdded || old_left > 0) &&
                      (kind == LineKind::kRemoved || new_left > 0);
    if (!fits) {
      return broken(at_ + 1, format("the hunk of line {} still misses {} old and {} new lines", hunk.at, old_left, new_left),
                    "begin each of its lines with a blank, - or +, and count them again");
    }
    if (kind != LineKind::kAdded) --old_left;
    if (kind != LineKind::kRemoved) --new_left;
    hunk.lines.push_back({kind, line.empty() || line == "\r" ? line : line.substr(1), true});
    return {};
  }

  std::vector<std::string_view> lines_;
  std::size_t at_ = 0, commit_ = 0;
  std::vector<FilePatch> files_;
};

}  // namespace

Result<std::vector<FilePatch>> parse_patch(std::string_view text) { return Parser(text).parse(); }

}  // namespace belljar::tools
