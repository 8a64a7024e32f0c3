// read_file, write_file, str_replace, delete, list.
#include "belljar/files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "tools/text.h"
#include "tools/tool.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kMostEntries = 1000;
constexpr std::size_t kLargestRead = std::size_t{64} << 20;

Result<std::string> read_whole(Call& call, const std::string& path) {
  std::string text = BELLJAR_TRY(call.sandbox.read_file(path, {.limit = kLargestRead + 1, .call = call.in_time}));
  if (text.size() <= kLargestRead) return text;
  return Error(Code::kOutOfRange, format("cannot read {} as a whole", belljar::quoted(path)))
      .reason("it is larger than 64 MiB")
      .next("read a part of it with bash: head, tail, sed -n");
}

Result<std::string> read_text(Call& call, const std::string& path) {
  std::string text = BELLJAR_TRY(read_whole(call, path));
  if (is_utf8(text)) return text;
  return Error(Code::kFailedPrecondition, format("cannot read {} as text", belljar::quoted(path)))
      .reason(format("its {} bytes are no UTF-8", text.size()))
      .next("read it with encoding \"base64\", or look at it with bash");
}

// Lines `first` (from 1) to `first + count`, with their ends.
std::string_view lines_of(std::string_view text, std::uint64_t first, std::uint64_t count) {
  const auto skip = [](std::string_view rest, std::uint64_t lines) {
    std::size_t at = 0;
    for (; lines > 0 && at < rest.size(); --lines) at = std::min(rest.find('\n', at), rest.size() - 1) + 1;
    return at;
  };
  text.remove_prefix(skip(text, first - 1));
  return text.substr(0, skip(text, count));
}

std::uint64_t count_lines(std::string_view text) {
  const auto ends = static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  return ends + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

Result<ToolAnswer> read_bytes(Call& call, const std::string& path) {
  const std::string bytes = BELLJAR_TRY(read_whole(call, path));
  std::string text = to_base64(bytes);
  if (text.size() > call.options.text_bytes) {
    return Error(Code::kOutOfRange, format("cannot show {} as base64", belljar::quoted(path)))
        .reason(format("its {} bytes would be {} bytes of text, and at most {} are shown", bytes.size(), text.size(),
                       call.options.text_bytes))
        .next("read a part of it with bash: head -c 1000 FILE | base64");
  }
  return ToolAnswer{.text = text,
                    .structured = {{"path", path}, {"size", bytes.size()}, {"encoding", "base64"}, {"content", text}}};
}

// The lines on which `part` begins.
std::string places_of(std::string_view text, std::string_view part, std::size_t& count) {
  std::string lines;
  std::uint64_t line = 1;
  std::size_t seen = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) {
    line += static_cast<std::uint64_t>(
        std::count(text.begin() + static_cast<std::ptrdiff_t>(seen), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    seen = at;
    if (++count <= 10) lines += format("{}{}", lines.empty() ? "" : ", ", line);
  }
  return count > 10 ? lines + ", ..." : lines;
}

// Why `part` may be missed: it is there with other white space.
std::string near_miss(std::string_view text, std::string_view part) {
  const auto bare = [](std::string_view given) {
    std::string kept;
    for (const char c : given) {
      if (c != ' ' && c != '\t' && c != '\r' && c != '\n') kept += c;
    }
    return kept;
  };
  const std::string wanted = bare(part);
  if (!wanted.empty() && bare(text).find(wanted) != std::string::npos) return "it is there with other white space";
  return "no place of the file is like it";
}

Error not_replaced(const std::string& path, std::string why, std::string next) {
  return Error(Code::kFailedPrecondition, format("cannot replace text in {}", belljar::quoted(path)))
      .reason(std::move(why))
      .next(std::move(next));
}

std::string_view kind_of(FileType type) {
  return type == FileType::kFile        ? "file"
         : type == FileType::kDirectory ? "directory"
         : type == FileType::kSymlink   ? "symlink"
                                        : "other";
}

}  // namespace

Result<ToolAnswer> read_file(Call& call) {
  const std::string& path = call.arguments.text("path");
  if (call.arguments.text("encoding") == "base64") return read_bytes(call, path);
  const std::string text = BELLJAR_TRY(read_text(call, path));
  const auto first = static_cast<std::uint64_t>(call.arguments.integer("line").value_or(1));
  const auto count = static_cast<std::uint64_t>(call.arguments.integer("lines").value_or(INT64_MAX));
  const std::string_view part = lines_of(text, first, count);
  const std::uint64_t total = count_lines(text);
  ToolAnswer answer;
  answer.text = shorten(part, call.options.text_bytes, "read them with `line` and `lines`");
  if (text.empty()) answer.text = "(empty)";
  else if (part.empty()) answer.text = format("(the file has {} lines)", total);
  answer.structured = {{"path", path},
                       {"size", text.size()},
                       {"lines", total},
                       {"content", shorten(part, call.options.text_bytes, "")},
                       {"truncated", part.size() > call.options.text_bytes}};
  return answer;
}

Result<ToolAnswer> write_file(Call& call) {
  const std::string& path = call.arguments.text("path");
  const std::string& content = call.arguments.text("content");
  const auto given = call.arguments.text("encoding") == "base64" ? from_base64(content) : content;
  if (!given) return Error(Code::kInvalidArgument, "cannot read the content").reason("it is no base64 (RFC 4648, with padding)");
  const std::string& bytes = *given;
  WriteOptions options{.how = call.arguments.flag("append") ? WriteMode::kAppend : WriteMode::kReplace, .call = call.in_time};
  if (call.arguments.flag("executable")) options.mode = 0755;
  BELLJAR_CHECK(call.sandbox.write_file(path, bytes, options));
  const bool appended = options.how == WriteMode::kAppend;
  return ToolAnswer{.text = format("{} {} bytes to {}", appended ? "appended" : "wrote", bytes.size(), escaped(path)),
                    .structured = {{"path", path}, {"bytes", bytes.size()}, {"appended", appended}}};
}

Result<ToolAnswer> str_replace(Call& call) {
  const std::string& path = call.arguments.text("path");
  const std::string& old_text = call.arguments.text("old");
  const std::string& new_text = call.arguments.text("new");
  if (old_text.empty()) return not_replaced(path, "`old` is empty", "give the text to replace; write_file writes a whole file");
  if (old_text == new_text) return not_replaced(path, "`old` and `new` are the same", "give the text that is to be there instead");
  std::string text = BELLJAR_TRY(read_whole(call, path));
  std::size_t count = 0;
  const std::string lines = places_of(text, old_text, count);
  if (count == 0)
    return not_replaced(path, "`old` is not in it: " + near_miss(text, old_text),
                        "read the file, and copy the text as it is, white space included");
  if (count > 1 && !call.arguments.flag("all"))
    return not_replaced(path, format("`old` is in it {} times, on the lines {}", count, lines),
                        "give more of the text around it, or set `all`");
  for (std::size_t at = text.find(old_text); at != std::string::npos; at = text.find(old_text, at + new_text.size()))
    text.replace(at, old_text.size(), new_text);
  BELLJAR_CHECK(call.sandbox.write_file(path, text, {.call = call.in_time}));
  return ToolAnswer{.text = format("replaced {} {} in {}, line{} {}", count, count == 1 ? "place" : "places", escaped(path),
                                   count == 1 ? "" : "s", lines),
                    .structured = {{"path", path}, {"replaced", count}}};
}

Result<ToolAnswer> remove(Call& call) {
  const std::string& path = call.arguments.text("path");
  const FileInfo info = BELLJAR_TRY(call.sandbox.stat(path, call.in_time));
  const bool tree = call.arguments.flag("recursive");
  BELLJAR_CHECK(call.sandbox.remove(path, {.depth = tree ? Depth::kTree : Depth::kOne, .call = call.in_time}));
  return ToolAnswer{
      .text = format("deleted the {} {}", info.type == FileType::kOther ? "special file" : kind_of(info.type), escaped(path)),
      .structured = {{"path", path}, {"type", kind_of(info.type)}}};
}

Result<ToolAnswer> list(Call& call) {
  const std::string path = call.arguments.has("path") ? call.arguments.text("path") : ".";
  const std::vector<FileInfo> found = BELLJAR_TRY(call.sandbox.list(path, call.in_time));
  ToolAnswer answer;
  Json entries = Json::array();
  for (const FileInfo& info : found) {
    if (entries.size() == kMostEntries) break;
    const bool directory = info.type == FileType::kDirectory;
    answer.text += escaped(info.path) + (directory ? "/" : "");
    if (info.type == FileType::kFile) answer.text += format("  {}", info.size);
    if (info.type == FileType::kSymlink) answer.text += " -> " + escaped(info.target);
    answer.text += '\n';
    Json entry{{"name", info.path}, {"type", kind_of(info.type)}};
    if (info.type == FileType::kFile) entry["size"] = info.size;
    entries.push_back(std::move(entry));
  }
  if (found.empty()) answer.text = "(empty)";
  if (found.size() > kMostEntries)
    answer.text += format("[... {} more; glob finds what has a certain name ...]", found.size() - kMostEntries);
  answer.structured = {{"path", path}, {"entries", std::move(entries)}, {"total", found.size()}};
  return answer;
}

}  // namespace belljar::tools
