// Ways to hide a text from a reader of its spelling. Each takes UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace belljar::detect {

std::string base64(std::string_view text);

struct Disguise {
  const char* name;
  std::string (*apply)(std::string_view text);
  bool latin_only;      // says nothing of other letters
  bool sign_by_itself;  // a clean text under it is flagged as well, and should be
};
std::span<const Disguise> disguises();

}  // namespace belljar::detect
