// Protected names in every spelling that some file system takes for them.
//
// `.GIT` opens `.git` on a file system that ignores case, and `.g<U+200C>it` does where ignorable code points
// are dropped (CVE-2014-9390). Folding here covers all of these at once, whatever the file system under the
// workspace does: the same tree may be used from another machine.
#include "policy/protected.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/format.h"
#include "policy/defaults.h"

namespace belljar::policy {
namespace {

constexpr bool is_ascii(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Default_Ignorable_Code_Point of Unicode 15 (DerivedCoreProperties.txt): what casefolded ext4 drops from a name; a superset of
// what HFS+ drops.
constexpr Range kIgnorable[] = {{0xAD, 0xAD},       {0x34F, 0x34F},    {0x61C, 0x61C},   {0x115F, 0x1160}, {0x17B4, 0x17B5},
                                {0x180B, 0x180F},   {0x200B, 0x200F},  {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
                                {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3},
                                {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

bool ignorable(std::uint32_t point) noexcept {
  return std::any_of(std::begin(kIgnorable), std::end(kIgnorable),
                     [&](const Range& range) { return point >= range.first && point <= range.last; });
}

// One code point of UTF-8 at text[at]; its length in bytes, 1 for a byte that starts none.
std::size_t decode(std::string_view text, std::size_t at, std::uint32_t& point) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(at);
  const std::size_t length = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 1;
  point = first;
  if (length == 1 || at + length > text.size()) return 1;
  point = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return point = first, 1;
    point = (point << 6) | (byte(at + i) & 0x3F);
  }
  return length;
}

}  // namespace

bool folds_to(std::string_view name, std::string_view lower_name) {
  if (name.size() < lower_name.size()) return false;  // folding makes nothing longer
  if (iequals(name, lower_name)) return true;
  return !is_ascii(name) && fold_name(name) == lower_name;
}

std::string fold_name(std::string_view name) {
  std::string result;
  result.reserve(name.size());
  for (std::size_t at = 0; at < name.size();) {
    std::uint32_t point = 0;
    const std::size_t length = decode(name, at, point);
    if (length == 1) result.push_back(to_lower(name[at]));
    else if (point == 0x17F) result.push_back('s');   // LATIN SMALL LETTER LONG S
    else if (point == 0x212A) result.push_back('k');  // KELVIN SIGN
    else if (!ignorable(point)) result.append(name.substr(at, length));
    at += length;
  }
  return result;
}

bool folds_to_pattern(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return folds_to(name, pattern);
  const std::string folded = fold_name(name);
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return folded.size() >= head.size() + tail.size() && folded.starts_with(head) && folded.ends_with(tail);
}

std::size_t protected_length(std::string_view rest) {
  const char first = rest.empty() ? '\0' : rest.front();
  // What starts with none of these letters is no protected name, in either case (defaults.cc; a unit test holds it to that).
  if (first != '.' && std::string_view("cklmo").find(static_cast<char>(first | 0x20)) == std::string_view::npos &&
      static_cast<unsigned char>(first) < 0x80)
    return 0;
  const std::string_view part = rest.substr(0, rest.find('/'));
  for (const ProtectedName& one : protected_names()) {
    const std::size_t slash = one.name.find('/');
    if (slash == std::string_view::npos) {
      if (folds_to_pattern(part, one.name)) return part.size();
      continue;
    }
    if (rest.size() == part.size() || !folds_to(part, one.name.substr(0, slash))) continue;
    const std::string_view below = rest.substr(part.size() + 1);
    const std::string_view second = below.substr(0, below.find('/'));
    if (folds_to_pattern(second, one.name.substr(slash + 1))) return part.size() + 1 + second.size();
  }
  return 0;
}

std::string protected_names_markdown() {
  std::string text = "| name | who reads it | what runs or is followed |\n| --- | --- | --- |\n";
  for (const ProtectedName& one : protected_names()) text += format("| `{}` | {} | {} |\n", one.name, one.tool, one.reads);
  return text;
}

std::string_view protected_name_in(std::string_view path) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    const std::size_t length = folds_to(part, ".git") ? part.size() : protected_length(path);
    if (length > 0) return path.substr(0, length);
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return {};
}

bool is_protected_parent(std::string_view part) {
  const auto names = protected_names();
  return std::any_of(names.begin(), names.end(), [&](const ProtectedName& one) {
    const std::size_t slash = one.name.find('/');
    return slash != std::string_view::npos && folds_to(part, one.name.substr(0, slash));
  });
}

}  // namespace belljar::policy
