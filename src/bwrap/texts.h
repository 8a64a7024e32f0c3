// What is said of a recipe: why it did not start, and where it is weaker than a policy of Belljar's would be.
#pragma once

#include <string>
#include <vector>

#include "launch/recipe.h"

namespace belljar::bwrap {

// One line, without "bwrap: ". Callers match the texts of a missing source, the id maps, the loopback, /proc and a refused
// namespace.
std::string failure_text(const launch::Recipe& recipe, const launch::RecipeFailure& failure);

// One line each; nothing is changed by them.
std::vector<std::string> weaknesses(const launch::Recipe& recipe);

}  // namespace belljar::bwrap
