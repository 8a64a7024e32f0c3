// Any words as bubblewrap's command line: no crash, each refusal says something, and what is accepted is accepted again when it
// comes by
// --args, with the same recipe.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "bwrap/parse.h"
#include "bwrap/texts.h"

using namespace belljar;
using bwrap::Parsed;

namespace {

bwrap::Surroundings surroundings(std::string args, unsigned uid) {
  bwrap::Surroundings here;
  here.environment = {"HOME=/h", "A=b"};
  here.uid = here.gid = uid;
  here.capabilities = 0xFF;
  here.read_fd = [args = std::move(args)](int fd) -> Result<std::string> {
    if (fd == 3) return args;
    if (fd == 4) return std::string(16, '\0');
    return Error(Code::kInvalidArgument, "none").sys(EBADF, "read");
  };
  return here;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned uid = data[0] % 2;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\0', at);
    words.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  const Parsed parsed = bwrap::parse_words(words, surroundings("--dir", uid));
  if (parsed.act == Parsed::Act::kRefused && parsed.refusal.empty()) std::abort();
  if (parsed.act != Parsed::Act::kRun) return 0;
  if (parsed.recipe.argv.empty()) std::abort();
  for (const auto& op : parsed.recipe.ops) {
    if (op.perms > 07777) std::abort();
  }
  (void)bwrap::weaknesses(parsed.recipe);
  for (int op = -1; op < static_cast<int>(parsed.recipe.ops.size()); ++op) {
    if (bwrap::failure_text(parsed.recipe, {launch::RecipeFailure::At::kSource, op, ENOENT, {}}).empty()) std::abort();
  }
  // The options before the command, by a descriptor: words of an --args may not name another.
  std::string options;
  const std::size_t count = words.size() - parsed.recipe.argv.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (words[i] == "--args" || words[i] == "--") return 0;
    options += words[i];
    options.push_back('\0');
  }
  const std::vector<std::string> again{"--args", "3", "--", "true"};
  const Parsed twice = bwrap::parse_words(again, surroundings(options, uid));
  if (twice.act != Parsed::Act::kRun || twice.recipe.ops != parsed.recipe.ops || twice.recipe.env != parsed.recipe.env)
    std::abort();
  return 0;
}
