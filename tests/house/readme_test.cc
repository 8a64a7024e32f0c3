// The README is what a newcomer reads to the end, so it stays short; what it leads to is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "support/built.h"

namespace belljar::test {
namespace {

const std::string kRoot = std::string(kSourceDir) + "/";

std::string text_of(const std::string& name) {
  std::ifstream file(kRoot + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Readme, HasNoMoreThan900Words) {
  std::istringstream words(text_of("README.md"));
  const auto count = std::distance(std::istream_iterator<std::string>(words), {});
  EXPECT_GT(count, 300);
  EXPECT_LE(count, 900) << "what is more goes to docs/GUIDE.md";
}

TEST(Readme, ItsLinksAndThoseOfTheGuideLeadSomewhere) {
  const std::regex link(R"(\]\(([^)#]+))");
  for (const std::string name : {"README.md", "docs/GUIDE.md"}) {
    const std::string text = text_of(name);
    int seen = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at, ++seen) {
      const std::filesystem::path target = std::filesystem::path(kRoot + name).parent_path() / (*at)[1].str();
      EXPECT_TRUE(std::filesystem::exists(target)) << name << " leads to " << (*at)[1];
    }
    EXPECT_GE(seen, 8) << name;
  }
}

// A term, the type that holds it, and the file that declares it: a rename that forgets the page is seen.
TEST(Glossary, ItsTypesAreWhereItSays) {
  const std::regex row(R"(\| [^|]+ \| `(\w+)` \| (\S+) \|)");
  const std::string text = text_of("docs/GLOSSARY.md");
  int seen = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at, ++seen) {
    const std::regex declared("(class|struct|enum class) (\\[\\[nodiscard\\]\\] )?" + (*at)[1].str() + "\\b");
    EXPECT_TRUE(std::regex_search(text_of((*at)[2]), declared)) << (*at)[1] << " is not declared in " << (*at)[2];
  }
  EXPECT_GT(seen, 60);
}

}  // namespace
}  // namespace belljar::test
