// Which refusals reports leave out: `GLOB on OPERATION by PROGRAM` for files, `HOST[:PORT]` for the network.
//
// The suffixes are taken from the end of the text, because a path may itself hold " on " or " by ". Ignoring
// changes reports alone: the act stays refused.
#include "policy/ignore.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/format.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

struct FilePattern {
  std::string_view glob;
  std::string_view operation = "*";
  std::string_view program = "*";
};

// Cuts " WORD name" off the end of `text`.
std::string_view cut_suffix(std::string_view& text, std::string_view word, std::string_view otherwise) noexcept {
  const std::size_t at = text.rfind(word);
  if (at == std::string_view::npos) return otherwise;
  const std::string_view name = text.substr(at + word.size());
  text = text.substr(0, at);
  return name;
}

FilePattern split_file(std::string_view text) noexcept {
  FilePattern pattern;
  pattern.program = cut_suffix(text, " by ", "*");
  pattern.operation = cut_suffix(text, " on ", "*");
  pattern.glob = text;
  return pattern;
}

struct HostPattern {
  std::string_view host;
  std::string_view port = "*";
};

HostPattern split_host(std::string_view text) noexcept {
  HostPattern pattern{text};
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && !text.ends_with(']')) pattern = {text.substr(0, colon), text.substr(colon + 1)};
  if (pattern.host.starts_with('[') && pattern.host.ends_with(']')) pattern.host = pattern.host.substr(1, pattern.host.size() - 2);
  return pattern;
}

bool file_matches(std::string_view text, const Violation& violation) noexcept {
  const FilePattern pattern = split_file(text);
  return name_match(pattern.operation, violation.operation) && name_match(pattern.program, violation.program) &&
         glob_covers(pattern.glob, normal(violation.target)).has_value();
}

bool host_matches(std::string_view text, const Violation& violation) noexcept {
  const HostPattern pattern = split_host(text), target = split_host(violation.target);
  return name_match(pattern.host, target.host) && (pattern.port == "*" || pattern.port == target.port);
}

bool is_port(std::string_view text) noexcept {
  return text == "*" || (text.size() <= 5 && is_number(text) && std::stoi(std::string(text)) <= 65535);
}

}  // namespace

Result<void> check_ignored_file(std::string_view text) {
  const FilePattern pattern = split_file(text);
  if (pattern.operation.empty() || pattern.program.empty())
    return Error(Code::kInvalidArgument, format("{} names no operation or program", quoted(text)))
        .reason("it takes GLOB, GLOB on OPERATION, GLOB by PROGRAM, or both in this order")
        .next("write `?` for a space that belongs to the path");
  return check_glob(pattern.glob);
}

Result<void> check_ignored_host(std::string_view text) {
  const HostPattern pattern = split_host(text);
  const bool fine =
      !pattern.host.empty() && is_port(pattern.port) && pattern.host.find_first_of("/ \t@%") == std::string_view::npos;
  if (fine) return {};
  return Error(Code::kInvalidArgument, format("{} is no HOST:PORT", quoted(text)))
      .reason("HOST may have `*`, PORT is a number, `*` or missing; an IPv6 address stands in brackets")
      .next("for example \"*.example.com:443\" or \"localhost:*\"");
}

std::string anchored(std::string_view text, std::string_view base, std::string_view home) {
  if (text.starts_with('/')) return std::string(text);
  if (text.starts_with("~/") && !home.empty()) return std::string(home) + std::string(text.substr(1));
  return std::string(base) + "/" + std::string(text);
}

bool is_ignored(const IgnoreViolations& lists, const Violation& violation) noexcept {
  if (violation.operation == "limit" || violation.target.empty()) return false;
  if (violation.target.starts_with('/'))
    return std::ranges::any_of(lists.file, [&](const std::string& text) { return file_matches(text, violation); });
  constexpr std::string_view kNetwork[] = {"connect", "udp-connect", "bind", "listen"};
  if (std::ranges::find(kNetwork, violation.operation) == std::end(kNetwork) && !violation.operation.starts_with("egress"))
    return false;
  return std::ranges::any_of(lists.network, [&](const std::string& text) { return host_matches(text, violation); });
}

}  // namespace belljar::policy
