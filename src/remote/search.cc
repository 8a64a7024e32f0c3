// grep inside, read as "name NUL line : text". The NUL (-Z) is what makes names with colons and line ends safe;
// without it the first colon would be a guess. -F takes the text as it is, -a searches binary files like
// others, -s is silent about files that went away, and -D skip keeps it from waiting for a FIFO. The image
// needs GNU grep for it.
//
// Status 1 means no match. Status 2 means that some file could not be read; with -s and results that is no
// error here.
#include "remote/search.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"

namespace belljar::remote {
namespace {

constexpr std::size_t kLongestLine = 1000;

// One "name NUL line : text" of `grep -Z -n`. False: it is none.
bool parse_match(std::string_view found, const std::string& top, GrepMatch& match) {
  const std::size_t nul = found.find('\0');
  const std::size_t colon = nul == std::string_view::npos ? nul : found.find(':', nul);
  if (colon == std::string_view::npos || !found.starts_with(top + "/")) return false;
  match.path = found.substr(top.size() + 1, nul - top.size() - 1);
  if (std::from_chars(found.data() + nul + 1, found.data() + colon, match.line).ec != std::errc()) return false;
  match.text = found.substr(colon + 1, kLongestLine);
  return true;
}

}  // namespace

Result<void> check_walk(const WalkOptions& options) {
  if (options.timeout <= std::chrono::milliseconds(0))
    return Error(Code::kInvalidArgument, "cannot search the workspace").reason("the timeout is not positive");
  return {};
}

Result<void> check_text(const std::string& text) {
  if (text.empty() || text.find('\n') != std::string::npos || text.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot search for {}", belljar::quoted(text)))
        .reason("it is empty or more than one line")
        .next("give a part of one line");
  return {};
}

std::vector<std::string> grep_words(const std::string& text, Case letters) {
  std::vector<std::string> argv = {"grep", "-nHZaFs", "-D", "skip"};
  if (letters == Case::kIgnoreAscii) argv.emplace_back("-i");
  argv.insert(argv.end(), {"-e", text, "--"});
  return argv;
}

Result<bool> add_matches(const HelperResult& helped, const std::string& top, std::size_t most, GrepResult& result) {
  // With -s it is silent about files that went away or may not be read; status 2 alone is about them.
  if (helped.out.empty() && (helped.exit_code > 2 || (helped.exit_code == 2 && !helped.err.empty())))
    return Error(Code::kFailedPrecondition, "cannot search the workspace")
        .reason(format("grep inside failed: {}", escaped(helped.err.substr(0, 200))))
        .next("use an image that has GNU grep");
  std::string_view rest = helped.out;
  while (!rest.empty()) {
    // The name may hold a line end, the line may not.
    const std::size_t nul = rest.find('\0');
    const std::size_t end = nul == std::string_view::npos ? nul : rest.find('\n', nul);
    GrepMatch match;
    if (end == std::string_view::npos || !parse_match(rest.substr(0, end), top, match)) return false;
    if (result.matches.size() >= most) return false;
    result.matches.push_back(std::move(match));
    rest.remove_prefix(end + 1);
  }
  return helped.complete;
}

}  // namespace belljar::remote
