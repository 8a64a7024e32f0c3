// One line of the trail: how it is sealed and how it is read.
//
//   {"seq":7,"time":"…","boottime_ns":1,"boot":"…","pid":9,"kind":"exec","data":{…},"prev":"<64 hex>","hash":"<64 hex>"}
//
// The hash is SHA-256 over the line's bytes from "{" up to the quote that closes "prev": over what stands in the file, so that
// nothing has to be brought into a canonical form, and the hash of the record before is part of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/audit.h"

namespace belljar::audit {

inline constexpr std::size_t kHashDigits = 64;
inline constexpr std::size_t kMaxLine = 1U << 20;  // longer ones are refused when written
extern const std::string kNoHash;                  // `prev` of the very first record

struct Head {
  std::uint64_t sequence = 0;
  std::string prev, hash;
  std::string kind;
  AuditTime time;
};

// With its newline.
std::string seal(const Head& head, int pid, std::string_view data);

enum class Broken { kNo, kForm, kHash };
struct Parsed {
  Broken broken = Broken::kForm;
  Head head;              // as it stands there, also of a line whose hash does not fit
  std::string_view data;  // the object
};
// `line`: without its newline.
Parsed parse(std::string_view line);

// Whether `tail`, bytes after the last newline, can be what a killed writer left of a record: not so when a whole record with more
// behind it stands there.
bool is_torn_record(std::string_view tail);

}  // namespace belljar::audit
