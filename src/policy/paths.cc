// Paths and patterns as text; no system call.
//
// Globs are matched in two levels, components and characters within one, by the same algorithm: on a mismatch
// only the last star is tried again, one step further. That is enough, since whatever an earlier star could
// take, the later one can take as well; and it bounds the time by the product of the lengths, where trying
// every star again would be exponential for patterns like `a*a*a*b`. Characters that other matchers give a
// meaning (`{`, `\`, `[^`) are errors: a rule that silently matches nothing protects nothing.
#include "policy/paths.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"
#include "base/wildcard.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "policy/domains.h"
#include "policy/ignore.h"
#include "policy/proxy_url.h"
#include "policy/schema.h"
#include "policy/tls_interception.h"

namespace belljar::policy {
namespace {

Result<void> check_plain(std::string_view text, std::string_view kind) {
  const auto bad = [&](std::string why) {
    const std::string_view shown = text.substr(0, 80);
    return Error(Code::kInvalidArgument, format("{}{} cannot be a {}", quoted(shown), text.size() > 80 ? "..." : "", kind))
        .reason(std::move(why));
  };
  if (text.empty()) return bad("it is empty");
  if (text.find('\0') != std::string_view::npos) return bad("it holds a NUL byte");
  if (text.size() > kMaxPath) return bad(format("it has {} bytes, the most is {}", text.size(), kMaxPath));
  return {};
}

// What other matchers take for something else and ours would take literally. `inside`: what stands between the brackets.
Result<void> check_class(std::string_view glob, std::string_view inside) {
  const auto bad = [&](std::string why, std::string next) {
    return Error(Code::kInvalidArgument, format("{} cannot be a pattern", quoted(glob)))
        .reason(std::move(why))
        .next(std::move(next));
  };
  if (inside.starts_with('^')) return bad("`[^` negates nothing here", "write [!...] for any other character");
  const std::size_t named = inside.find("[:");
  if (named != std::string_view::npos && inside.size() > named + 2 && inside.ends_with(':'))
    return bad("character classes have no names here", "write the range: [a-z], [0-9], [A-Za-z]");
  return {};
}

}  // namespace

Result<void> check_path(std::string_view path) {
  BELLJAR_CHECK(check_plain(path, "path"));
  if (path.starts_with('~') && path.size() > 1 && path[1] != '/') {
    return Error(Code::kInvalidArgument, format("{} cannot be a path", quoted(path)))
        .reason("`~name` is not looked up")
        .next("write the path out, or ./~name for a file of that name");
  }
  if (path.starts_with('$')) {
    return Error(Code::kInvalidArgument, format("{} cannot be a path", quoted(path)))
        .reason("variables are not expanded in a policy")
        .next("write the path out, or ~/ for the home directory");
  }
  return {};
}

Result<void> check_glob(std::string_view glob) {
  BELLJAR_CHECK(check_plain(glob, "pattern"));
  BELLJAR_CHECK(check_path(glob));
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\') {
      return Error(Code::kInvalidArgument, format("{} cannot be a pattern", quoted(glob)))
          .reason("a backslash escapes nothing here")
          .next("write [*] for a literal star");
    }
    if (glob[i] == '{' || glob[i] == '}') {
      return Error(Code::kInvalidArgument, format("{} cannot be a pattern", quoted(glob)))
          .reason("braces mean nothing here: no name but one with braces would match")
          .next("write two entries; write [{] or [}] for a literal brace");
    }
    if (glob[i] != '[') continue;
    const std::size_t close = glob.find(']', i + (i + 1 < glob.size() && glob[i + 1] == '!' ? 3 : 2));
    const std::size_t slash = glob.find('/', i);
    if (close == std::string_view::npos || (slash != std::string_view::npos && slash < close)) {
      return Error(Code::kInvalidArgument, format("{} cannot be a pattern", quoted(glob)))
          .reason("a `[` is not closed before the next `/`");
    }
    BELLJAR_CHECK(check_class(glob, glob.substr(i + 1, close - i - 1)));
    i = close;
  }
  return {};
}

Result<void> check_variable(std::string_view name) {
  const auto bad = [&](std::string why) {
    return Error(Code::kInvalidArgument, format("{} cannot be the name of a variable", quoted(name))).reason(std::move(why));
  };
  if (name.empty()) return bad("it is empty");
  if (name.find('=') != std::string_view::npos) return bad("it holds an equals sign");
  if (name.find('\0') != std::string_view::npos) return bad("it holds a NUL byte");
  return {};
}

Result<void> check_name_pattern(std::string_view pattern) {
  BELLJAR_CHECK(check_variable(pattern));
  if (pattern.find_first_of("[]{}\\") == std::string_view::npos) return {};
  return Error(Code::kInvalidArgument, format("{} cannot be a pattern of variables' names", quoted(pattern)))
      .reason("only `*` and `?` mean something here: no name but one with this very text would match")
      .next("write one pattern for each name, or `?` for any one character");
}

Result<void> check_exact_name(std::string_view name) {
  BELLJAR_CHECK(check_variable(name));
  if (name.find_first_of("*?[]{}\\") == std::string_view::npos) return {};
  return Error(Code::kInvalidArgument, format("{} cannot be the name of a variable", quoted(name)))
      .reason("names are exact here, not patterns: what a pattern withholds passes one by one")
      .next("name each variable; patterns go into environment.include");
}

Result<void> check_element(const Key& key, std::string_view text) {
  if (key.type == Type::kPath || key.type == Type::kPaths) return check_path(text);
  BELLJAR_CHECK(check_plain(text, "value"));
  if (key.name == "environment.pass") return check_exact_name(text);
  if (key.name == "environment.include" || key.name == "environment.exclude") return check_name_pattern(text);
  if (key.name == "ignore_violations.file") return check_ignored_file(text);
  if (key.name == "ignore_violations.network") return check_ignored_host(text);
  if (key.name == "network.allowed_domains" || key.name == "network.denied_domains" || key.name == "network.tls_passthrough") {
    if (auto rule = parse_domain_rule(text); !rule) return std::move(rule).error();
  }
  if (key.name == "network.allowed_requests") {
    if (auto rule = parse_request_rule(text); !rule) return std::move(rule).error();
  }
  if (key.name == "network.upstream_proxy" && !text.empty()) {
    if (auto proxy = parse_proxy_url(text); !proxy) return std::move(proxy).error();
  }
  if (key.name == "network.credentials") {
    if (auto credential = parse_credential(text); !credential) return std::move(credential).error();
  }
  return {};
}

std::string normal(std::string_view path) {
  std::string result;
  result.reserve(path.size() + 1);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      const std::size_t last = result.rfind('/');
      result.resize(last == std::string::npos ? 0 : last);
      continue;
    }
    result += '/';
    result += part;
  }
  if (result.empty()) result += '/';
  return result;
}

Result<std::string> absolute(std::string_view path, std::string_view home, std::string_view base) {
  if (path.starts_with('/')) return normal(path);
  const bool tilde = path == "~" || path.starts_with("~/");
  const std::string_view start = tilde ? home : base;
  if (start.empty() || !start.starts_with('/')) {
    return Error(Code::kInvalidArgument, format("cannot resolve path {}", quoted(path)))
        .reason(tilde ? "there is no home directory ($HOME is empty or relative)" : "there is no directory to resolve it against")
        .next("write an absolute path");
  }
  std::string joined(start);
  joined += '/';
  joined += tilde ? path.substr(1) : path;
  std::string result = normal(joined);
  if (result.size() > kMaxPath) {
    return Error(Code::kInvalidArgument, "a path becomes too long")
        .reason(format("{} bytes, the most is {}", result.size(), kMaxPath));
  }
  return result;
}

std::string literal_glob(std::string_view path) {
  std::string result;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[') result += '[', result += c, result += ']';
    else result += c;
  }
  return result;
}

bool is_within(std::string_view path, std::string_view root) noexcept {
  const std::size_t size = root.size();
  if (size == 1 && root[0] == '/') return path.starts_with('/');
  // The ends first: most rules differ there, and a rule is asked for each of hundreds.
  if (path.size() < size || (path.size() > size && path[size] != '/') || (size != 0 && path[size - 1] != root[size - 1]))
    return false;
  return path.starts_with(root);
}

std::size_t components(std::string_view path) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < path.size(); ++i) count += path[i] != '/' && (i == 0 || path[i - 1] == '/');
  return count;
}

namespace {

// One character of a pattern against one of the text; `next` is where the pattern goes on.
bool unit_match(std::string_view pattern, std::size_t at, unsigned char c, std::size_t& next) noexcept {
  if (pattern[at] != '[') {
    next = at + 1;
    return pattern[at] == '?' || static_cast<unsigned char>(pattern[at]) == c;
  }
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    const auto low = static_cast<unsigned char>(pattern[i]);
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (low <= c && c <= static_cast<unsigned char>(pattern[i + 2]));
      i += 3;
    } else {
      found = found || low == c;
      ++i;
    }
  }
  next = i < pattern.size() ? i + 1 : i;
  return found != negated;
}

bool component_match(std::string_view pattern, std::string_view text) noexcept {
  return wildcard_match(pattern, text, [&](std::size_t at, char c, std::size_t& next) {
    return unit_match(pattern, at, static_cast<unsigned char>(c), next);
  });
}

// The component at the front, and the rest without its slash.
std::string_view next_component(std::string_view& path) noexcept {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  const std::string_view part = path.substr(0, slash);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  return part;
}

}  // namespace

bool glob_match(std::string_view glob, std::string_view path) noexcept {
  // `**` is to components what `*` is to characters: one point to go back to is enough.
  std::optional<std::pair<std::string_view, std::string_view>> back;
  for (;;) {
    std::string_view glob_rest = glob, path_rest = path;
    const std::string_view pattern = next_component(glob_rest);
    const std::string_view part = next_component(path_rest);
    if (pattern == "**") {
      back = {glob_rest, path};
      glob = glob_rest;
      continue;
    }
    if (pattern.empty() && part.empty()) return true;
    if (!pattern.empty() && !part.empty() && component_match(pattern, part)) {
      glob = glob_rest;
      path = path_rest;
      continue;
    }
    if (!back || next_component(back->second).empty()) return false;
    glob = back->first;
    path = back->second;
  }
}

Result<std::string> glob_below(std::string_view glob, std::string_view top, std::string_view other) {
  BELLJAR_CHECK(check_glob(glob));
  const auto escapes = [glob] {
    return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(glob)))
        .next("give a pattern relative to the workspace, without `..`");
  };
  std::string plain;
  for (std::string_view rest = glob; !rest.empty();) {
    const std::string_view part = next_component(rest);
    if (part == "..") return escapes();
    if (!part.empty() && part != ".") plain.append("/").append(part);
  }
  if (!glob.starts_with('/')) return plain.empty() ? plain : plain.substr(1);
  for (const std::string_view name : {top, other}) {
    if (name.empty() || !is_within(plain, name)) continue;
    plain.erase(0, name == "/" ? 0 : name.size());
    return plain.empty() ? plain : plain.substr(1);
  }
  return escapes();
}

std::optional<std::size_t> glob_covers(std::string_view glob, std::string_view path) noexcept {
  for (std::size_t end = path.size(); end > 0 && end != std::string_view::npos; end = path.rfind('/', end - 1)) {
    if (glob_match(glob, path.substr(0, end))) return end;
  }
  return std::nullopt;
}

bool name_match(std::string_view pattern, std::string_view name) noexcept {
  return wildcard_match(pattern, name, [&](std::size_t at, char c, std::size_t& next) {
    next = at + 1;
    return pattern[at] == '?' || to_lower(pattern[at]) == to_lower(c);
  });
}

}  // namespace belljar::policy
