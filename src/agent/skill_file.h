// A skill: a Markdown file with front matter. Pure.
#pragma once

#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar::agent {

struct Skill {
  std::string name, description, body;
  bool operator==(const Skill&) const = default;
};

// Front matter is what such files hold: `key: value` on one line, plain or quoted, or a block (`>` or `|`) of indented lines. Other
// keys are passed over. Errors: kInvalidArgument, no front matter, no name, no description, or YAML beyond that.
Result<Skill> parse_skill(std::string_view text);

}  // namespace belljar::agent
