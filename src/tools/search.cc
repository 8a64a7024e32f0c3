// glob, grep.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "tools/text.h"
#include "tools/tool.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kMostResults = 1000;

WalkOptions walk_of(const Call& call) {
  const auto wanted = static_cast<std::uint64_t>(call.arguments.integer("max_results").value_or(kMostResults));
  return {.max_results = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kMostResults)), .cancel = call.context.cancel};
}

void end_search(ToolAnswer& answer, std::size_t count, bool complete, std::size_t text_bytes) {
  if (count == 0) answer.text = complete ? "(nothing found)" : "(nothing found in the part that was searched)";
  answer.text = shorten(answer.text, text_bytes, "search for less");
  if (!complete) answer.text += "\n[not complete: the search ended early; search for less]";
  answer.structured["complete"] = complete;
}

// Nothing above the workspace is searched: "nothing found" would say that nothing is there.
Result<void> check_inside(std::string_view pattern) {
  for (std::size_t at = 0; at <= pattern.size();) {
    const std::size_t end = std::min(pattern.find('/', at), pattern.size());
    if (pattern.substr(at, end - at) == "..")
      return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(pattern)))
          .next("give a pattern relative to the workspace, without `..`");
    at = end + 1;
  }
  return {};
}

}  // namespace

Result<ToolAnswer> glob(Call& call) {
  BELLJAR_CHECK(check_inside(call.arguments.text("pattern")));
  const GlobResult found = BELLJAR_TRY(call.sandbox.glob(call.arguments.text("pattern"), walk_of(call)));
  ToolAnswer answer;
  Json paths = Json::array();
  for (const FileInfo& info : found.files) {
    answer.text += escaped(info.path) + (info.type == FileType::kDirectory ? "/\n" : "\n");
    paths.push_back(info.path);
  }
  answer.structured = {{"paths", std::move(paths)}};
  end_search(answer, found.files.size(), found.complete, call.options.text_bytes);
  return answer;
}

Result<ToolAnswer> grep(Call& call) {
  GrepOptions options{.letters = call.arguments.flag("ignore_case") ? Case::kIgnoreAscii : Case::kSensitive, .walk = walk_of(call)};
  if (call.arguments.has("files")) options.files = call.arguments.text("files");
  BELLJAR_CHECK(check_inside(options.files));
  const GrepResult found = BELLJAR_TRY(call.sandbox.grep(call.arguments.text("text"), options));
  ToolAnswer answer;
  Json matches = Json::array();
  for (const GrepMatch& match : found.matches) {
    answer.text += format("{}:{}:{}\n", escaped(match.path), match.line, match.text);
    matches.push_back({{"path", match.path}, {"line", match.line}, {"text", match.text}});
  }
  answer.structured = {{"matches", std::move(matches)}};
  end_search(answer, found.matches.size(), found.complete, call.options.text_bytes);
  return answer;
}

}  // namespace belljar::tools
