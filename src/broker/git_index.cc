// Reads git's index (gitformat-index(5)) to judge one thing: which names a checkout on the host would write
// to.
//
// Git can read the same bytes in two ways: one thread from the start, or several threads by the table of
// offsets (IEOT), and the end of the entries may be told by an extension (EOIE). An index whose two readings
// differ would show the judge one list of names and git another. So the tables are checked against the
// entries that were read, and any difference is an objection.
//
// Names are held against what git's verify_path() refuses with every protection on, whatever core.protectHFS
// and core.protectNTFS say: an older or differently configured git on the host may be the one that reads it.
#include "broker/git_index.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/format.h"
#include "broker/git_names.h"

namespace belljar::broker {
namespace {

using Objection = std::optional<std::string>;

constexpr std::size_t kHeader = 12;  // "DIRC", version, count
constexpr std::size_t kHash = 20;
constexpr std::size_t kFixed = 40 + kHash + 2;  // stat data, object name, flags
constexpr std::size_t kModeAt = 24, kFlagsAt = 40 + kHash;
constexpr std::uint32_t kSparseDir = 0040000;
constexpr std::size_t kExtension = 8;                          // signature, size
constexpr std::size_t kEndOfEntries = kExtension + 4 + kHash;  // where git looks for it: at the end

std::uint32_t number_at(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i])); };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

// What git's verify_path() refuses (read-cache.c), whatever core.protectHFS and core.protectNTFS say.
bool name_leads_out(std::string_view name) {
  for (;;) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == ".." || is_dot_git(part)) return true;
    if (part.size() == name.size()) return false;
    name.remove_prefix(part.size() + 1);
  }
}

// Reads as git does, and objects where two ways of git's (one thread or several, by the table of offsets) could read differently.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  Objection read() {
    if (text_.empty()) return std::nullopt;  // git takes it for none
    if (text_.size() < kHeader + kHash || !text_.starts_with("DIRC")) return "it is no index of git";
    version_ = number_at(text_, 4);
    if (version_ < 2 || version_ > 4) return format("it is an index of version {}, which nobody judges", version_);
    text_.remove_suffix(kHash);
    at_ = kHeader;
    for (std::uint32_t left = number_at(text_, 8); left > 0; --left) {
      if (Objection why = entry()) return why;
    }
    return extensions();
  }

 private:
  static Objection broken() {
    return "git could not read it with SHA-1 names, or it belongs to a repository with SHA-256 ones, which nobody judges";
  }

  Objection entry() {
    const std::size_t begin = at_;
    if (text_.size() - begin < kFixed) return broken();
    starts_.push_back({static_cast<std::uint32_t>(begin), true});
    const auto high = static_cast<unsigned char>(text_[begin + kFlagsAt]);
    const std::size_t told = (high & 0x0FU) << 8 | static_cast<unsigned char>(text_[begin + kFlagsAt + 1]);
    const bool extended = (high & 0x40U) != 0;
    if (extended && version_ == 2) return broken();
    at_ += kFixed + (extended ? 2 : 0);
    std::size_t kept = 0;
    if (version_ == 4 && !take_cut(kept)) return broken();
    const std::size_t end = at_ <= text_.size() ? text_.find('\0', at_) : std::string_view::npos;
    if (end == std::string_view::npos) return broken();
    name_.resize(kept);
    name_.append(text_.substr(at_, end - at_));
    // Git takes the length from the flags unless it is too long for them.
    if (told != 0xFFF ? told != name_.size() : name_.size() < 0xFFF) return broken();
    at_ = version_ == 4 ? end + 1 : begin + (end - begin + 8) / 8 * 8;  // else one to eight NUL bytes
    if (at_ > text_.size()) return broken();
    starts_.back().whole = kept == 0;
    if (name_.empty()) return nameless_ = true, std::nullopt;
    std::string_view name = name_;
    if (number_at(text_, begin + kModeAt) == kSparseDir && name.ends_with('/')) name.remove_suffix(1);
    if (!name_leads_out(name)) return std::nullopt;
    return format("its entry {} lies outside of the work tree or in git's own files", quoted(name.substr(0, 200)));
  }

  // Version 4: so many bytes of the name before go; `kept` stay.
  bool take_cut(std::size_t& kept) {
    std::size_t cut = 0;
    for (bool first = true;; first = false) {
      if (at_ >= text_.size() || cut > kMaxIndex) return false;
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      cut = first ? byte & 0x7FU : (cut + 1) << 7 | (byte & 0x7FU);
      if ((byte & 0x80U) == 0) break;
    }
    if (cut > name_.size()) return false;
    kept = name_.size() - cut;
    return true;
  }

  Objection extensions() {
    const std::size_t begin = at_;
    const bool told_end = text_.size() >= kEndOfEntries && text_.substr(text_.size() - kEndOfEntries).starts_with("EOIE");
    if (told_end && number_at(text_, text_.size() - kEndOfEntries + kExtension) != begin) return broken();
    bool splits = false;
    while (at_ < text_.size()) {
      if (text_.size() - at_ < kExtension) return broken();
      const std::string_view name = text_.substr(at_, 4);
      const std::size_t size = number_at(text_, at_ + 4);
      at_ += kExtension;
      if (size > text_.size() - at_) return broken();
      if (name == "link") splits = true;
      if (name == "IEOT" && !fits(text_.substr(at_, size))) return "its table of offsets does not lead to its entries";
      at_ += size;
    }
    // Of a split index, an entry without a name replaces one of the shared index, which has a name of its own to be judged by.
    return nameless_ && !splits ? Objection("it has an entry without a name") : std::nullopt;
  }

  // Blocks that threads of git's read each for itself: they begin where entries begin, with whole names.
  bool fits(std::string_view table) const {
    if (table.size() < 4 || number_at(table, 0) != 1 || table.size() % 8 != 4) return false;
    std::size_t next = 0;
    for (std::size_t at = 4; at < table.size(); at += 8) {
      if (next >= starts_.size() || starts_[next].at != number_at(table, at) || !starts_[next].whole) return false;
      next += number_at(table, at + 4);
    }
    return next == starts_.size();
  }

  struct Start {
    std::uint32_t at;
    bool whole;  // it shares nothing with the name before
  };
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t version_ = 0;
  std::string name_;  // of the entry before, for version 4
  std::vector<Start> starts_;
  bool nameless_ = false;
};

}  // namespace

Objection index_objection(std::string_view content) { return Reader(content).read(); }

}  // namespace belljar::broker
