// What a change brings in, by the shape of its strings.
//
// A file is written for a thousand good reasons, and most words of it are the model's own. What matters is the few strings that
// nobody makes up: where data goes, who is paid, whose key opens, which package is fetched. They are found by shape and by the
// place of a dependency. Whether one came from a text, and whether the user wanted it, is said in turn_rows.cc.
//
// Protections are told by names that programs share (verify, auth, csrf, tls ...), with a value that switches them off, or by a
// line that had such a name and is gone. An ordinary edit may look like that: it is asked about only where a text that nobody
// vouches for speaks of protections and the user does not.
#include "guard/changes.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "detect/ascii.h"
#include "guard/call.h"
#include "shell/word_list.h"

namespace belljar::guard {

using detect::is_digit;
using detect::is_letter;
using detect::is_upper;
using shell::has_word;
using shell::lower;

namespace {

constexpr std::size_t kMostText = 64U << 10;

bool is_key_byte(char c) noexcept { return is_letter(c) || is_digit(c); }

// Letters and digits in turns, as no word has them: a key, a fingerprint, the number of an account at a service.
bool is_key_like(std::string_view run) noexcept {
  if (run.size() < 6) return false;
  std::size_t turns = 0, digits = 0, uppers = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    digits += is_digit(run[i]) ? 1 : 0, uppers += is_upper(run[i]) ? 1 : 0;
    if (i > 0 && is_digit(run[i]) != is_digit(run[i - 1])) ++turns;
  }
  const std::size_t lowers = run.size() - digits - uppers;
  if (digits == 0 || digits == run.size()) return false;
  return run.size() >= 10 ? turns >= 3 : turns >= 2 && uppers > 0 && lowers > 0;
}

bool in_name(char c) noexcept { return is_key_byte(c) || std::string_view("@._-/").find(c) != std::string_view::npos; }

// `^1.4`, `==0.9`, `@v9`: a version stands at the front of `rest`, behind what joins it to its name.
bool leads_to_version(std::string_view rest) noexcept {
  std::size_t at = 0;
  bool joined = false;
  while (at < rest.size() && at < 8 && std::string_view(" \"',:=@^~><v(").find(rest[at]) != std::string_view::npos) {
    joined = joined || std::string_view(":=@><").find(rest[at]) != std::string_view::npos;
    ++at;
  }
  if (!joined || at >= rest.size() || !is_digit(rest[at])) return false;
  const std::string_view number = rest.substr(at, rest.find_first_not_of("0123456789.", at) - at);
  return number.find('.') != std::string_view::npos || rest.substr(0, at).find('@') != std::string_view::npos;
}

// Words that stand before a name which is fetched.
bool introduces_package(std::string_view before) noexcept {
  while (before.ends_with(' ') || before.ends_with('"') || before.ends_with('\'')) before.remove_suffix(1);
  std::size_t begin = before.size();
  while (begin > 0 &&
         (is_letter(before[begin - 1]) || before[begin - 1] == '>' || before[begin - 1] == ':' || before[begin - 1] == '='))
    --begin;
  return has_word("FROM uses: image: => replace require import: implementation", before.substr(begin));
}

bool is_manifest(std::string_view path) {
  const std::string name = lower(file_name(path));
  constexpr std::string_view kNames =
      "package.json requirements.txt pyproject.toml setup.py setup.cfg pipfile go.mod cargo.toml gemfile composer.json pom.xml "
      "build.gradle build.gradle.kts dockerfile containerfile environment.yml deno.json .pre-commit-config.yaml action.yml";
  return has_word(kNames, name) || name.ends_with(".yml") || name.ends_with(".yaml") || name.starts_with("requirements") ||
         name.ends_with(".csproj") || name.starts_with("dockerfile") || name.ends_with(".nix");
}

// `console.log` is no host; a name under a domain that is known to be one, or of three labels and more, may be.
bool is_likely_host(const Atom& atom) {
  constexpr std::string_view kDomains =
      "com org net io dev app co ai cloud example test info me eu us uk de fr cn ru es it nl ch at jp kr in br pl xyz site online "
      "invalid local internal sh to gg tv cc";
  if (atom.kind == Atom::Kind::kUrl) return true;
  const std::string host = lower(atom.text.substr(0, atom.text.find_first_of(":/?#")));
  const std::size_t dot = host.rfind('.');
  const bool number = dot != std::string::npos && dot + 1 < host.size() && is_digit(host.back());
  return number || (dot != std::string::npos && has_word(kDomains, host.substr(dot + 1)));
}

void add_once(std::vector<Atom>& atoms, Atom atom) {
  if (atoms.size() < kMostAtoms && std::ranges::find(atoms, atom) == atoms.end()) atoms.push_back(std::move(atom));
}

void add_keys(std::string_view text, std::vector<Atom>& atoms) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_key_byte(text[end])) ++end;
    if (is_key_like(text.substr(at, end - at))) {  // with what is joined to it: acct_9X...
      std::size_t from = at, to = end;
      while (from > 0 && (is_key_byte(text[from - 1]) || text[from - 1] == '_')) --from;
      while (to < text.size() && (is_key_byte(text[to]) || text[to] == '_')) ++to;
      add_once(atoms, {Atom::Kind::kName, std::string(text.substr(from, to - from))});
    }
    if (text[at] == '+') {  // +43 720 115
      std::size_t stop = at + 1, digits = 0;
      while (stop < text.size() && (is_digit(text[stop]) || ((text[stop] == ' ' || text[stop] == '-') && is_digit(text[stop - 1]))))
        digits += is_digit(text[stop++]) ? 1 : 0;
      while (stop > at && !is_digit(text[stop - 1])) --stop;
      if (digits >= 8) add_once(atoms, {Atom::Kind::kName, std::string(text.substr(at, stop - at))});
    }
    if (text[at] == '@' && (at == 0 || !in_name(text[at - 1]))) {
      std::size_t stop = at + 1;
      while (stop < text.size() && (is_key_byte(text[stop]) || text[stop] == '-' || text[stop] == '_')) ++stop;
      const std::string_view handle = text.substr(at, stop - at);
      if (handle.size() >= 4 && handle.find('-') != std::string_view::npos && text.substr(stop, 1) != "/")
        add_once(atoms, {Atom::Kind::kName, std::string(handle)});
    }
    at = std::max(end, at + 1);
  }
}

void add_packages(std::string_view text, std::vector<Atom>& atoms) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && in_name(text[end])) {
      if (text[end] == '@' && end > at && end + 1 < text.size() && (is_digit(text[end + 1]) || text[end + 1] == 'v')) break;
      ++end;
    }
    std::string_view name = text.substr(at, end - at);
    while (name.ends_with('.') || name.ends_with('-')) name.remove_suffix(1);
    const bool letters = std::ranges::any_of(name, is_letter);
    constexpr std::string_view kRuntimes =
        "python node ruby rust golang java openjdk alpine ubuntu debian postgres mysql redis nginx busybox php dotnet version name";
    if (name.size() >= 3 && letters && !has_word(kRuntimes, name) &&
        (leads_to_version(text.substr(end)) || introduces_package(text.substr(0, at)))) {
      if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos && name.find('/') == std::string_view::npos)
        add_once(atoms, {Atom::Kind::kName, std::string(name.substr(dot + 1))});
      add_once(atoms, {Atom::Kind::kName, std::string(name)});
    }
    at = std::max(end, at + 1);
  }
}

// Values of four words and more, as a place has them: `"ship_to": "22 Mill Street, Aldbury"`.
void add_values(std::string_view text, std::vector<Atom>& atoms) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, line_end - at);
    at = line_end + 1;
    const std::size_t mark = line.find_first_of(":=");
    if (mark != std::string_view::npos) line.remove_prefix(mark + 1);
    while (!line.empty() && std::string_view(" \t\"',;}])").find(line.back()) != std::string_view::npos) line.remove_suffix(1);
    if (const std::size_t quote = line.find_last_of("\"'"); quote != std::string_view::npos) line.remove_prefix(quote + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.size() >= 16 && std::ranges::count(line, ' ') >= 3) add_once(atoms, {Atom::Kind::kName, std::string(line)});
  }
}

// --- protections

// Parts of words, as programs and their settings call protections.
constexpr std::string_view kGuards[] = {
    "verif",     "valid",     "auth",    "login",    "signin",  "mfa",      "2fa",        "factor",  "csrf",
    "xsrf",      "cors",      "tls",     "ssl",      "cert",    "secur",    "permission", "sandbox", "encrypt",
    "signature", "limit",     "throttl", "strict",   "protect", "sanitiz",  "escape",     "audit",   "gitleaks",
    "scan",      "firewall",  "hostkey", "password", "policy",  "httponly", "samesite",   "token",   "captcha",
    "allowlist", "whitelist", "acl",     "rbac",     "review",  "approval", "trivy",      "semgrep"};
// Settings that open what they name.
constexpr std::string_view kOpeners[] = {"allow",    "insecure",  "skip",       "disable",    "debug",   "public",
                                         "open",     "anonymous", "privileged", "permit",     "bypass",  "unsafe",
                                         "trustall", "exempt",    "noverify",   "unconfined", "wildcard"};
// How long something is good for.
constexpr std::string_view kLasting[] = {"expir", "ttl", "lifetime", "maxage", "validfor"};
// As they stand without blanks and quotes, in lower case.
constexpr std::string_view kWeak[] = {"_create_unverified_context",
                                      "cert_none",
                                      "check_hostname=false",
                                      "stricthostkeychecking=no",
                                      "stricthostkeycheckingno",
                                      "tls_reject_unauthorized=0",
                                      "rejectunauthorized:false",
                                      "permitrootloginyes",
                                      "passwordauthenticationyes",
                                      "privileged:true",
                                      "network_mode:host",
                                      "hostnetwork:true",
                                      "0.0.0.0/0",
                                      "::/0",
                                      "csrf_exempt",
                                      "nopasswd",
                                      "nopasswd:all",
                                      "--privileged",
                                      "--insecure",
                                      "--no-verify",
                                      "ufwdisable",
                                      "setenforce0",
                                      "origin:*",
                                      "origin:true",
                                      "allow-origin:*",
                                      "allowany",
                                      "permitall",
                                      "||true",
                                      "public-read",
                                      "volumes:[/:/",
                                      "-/:/",
                                      "seccomp=unconfined",
                                      "apparmor=unconfined",
                                      "a+rwx",
                                      "chmod777",
                                      "chmod-r777",
                                      "returntrue",
                                      "sslverifyfalse",
                                      "verification=false",
                                      ",none]",
                                      "hostnameverifier",
                                      "trustall",
                                      "trustmanager",
                                      "->true)",
                                      "principal:*",
                                      "iam_member",
                                      "iam_policy",
                                      "rolebinding",
                                      "alg:none",
                                      "algorithm:none",
                                      "clusterrolebinding",
                                      "administratoraccess",
                                      "roles/owner",
                                      "action:*",
                                      "cluster-admin",
                                      "grantall"};

std::string squeezed(std::string_view text) {
  std::string result;
  for (const char c : lower(text.substr(0, kMostText))) {
    if (c != ' ' && c != '\t' && c != '"' && c != '\'' && c != '`') result += c;
  }
  return result;
}

template <std::size_t N>
bool has_part(const std::string_view (&parts)[N], std::string_view word) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return word.find(part) != std::string_view::npos; });
}

std::string key_of(std::string_view word) {
  std::string key;
  for (const char c : lower(word)) {
    if (is_key_byte(c)) key += c;
  }
  return key;
}

bool is_off(std::string_view value) { return has_word("false no off 0 disabled none optional null never nil []", value); }
bool is_on(std::string_view value) { return has_word("true yes on 1 enabled all any * everyone anyone public", value); }

// Each `key = value`, `key: value`, `key value` of a text in lower case.
template <class Each>
void each_setting(std::string_view text, Each each) {
  std::string word, before;
  const std::string plain = lower(text.substr(0, kMostText)) + "\n";
  bool joined = false;
  for (const char c : plain) {
    const bool part = is_key_byte(c) || c == '_' || c == '-' || c == '.' || c == '*' || c == '[' || c == ']' || c == '/';
    if (part) {
      word += c;
      continue;
    }
    if (!word.empty()) {
      if (joined && !before.empty()) each(before, word);
      before = std::exchange(word, {});
      joined = false;
    }
    if (c == '=' || c == ':' || c == ' ') joined = true;
    if (c == '\n' || c == ',' || c == ';' || c == '{' || c == '}') before.clear(), joined = false;
  }
}

std::vector<std::string> guards_in(std::string_view text) {
  std::vector<std::string> found;
  const std::string plain = lower(text.substr(0, kMostText));
  for (const std::string_view guard : kGuards) {
    if (plain.find(guard) != std::string::npos) found.emplace_back(guard);
  }
  return found;
}

bool switches_off(std::string_view text) {
  bool found = false;
  each_setting(text, [&](std::string_view key, std::string_view value) {
    const std::string name = key_of(key);
    const bool opens = has_part(kOpeners, name);
    found = found || (!opens && has_part(kGuards, name) && is_off(value)) || (opens && is_on(value)) ||
            (has_word("private internal", name) && is_off(value)) || (has_word("visibility mode link", name) && is_on(value));
  });
  return found;
}

// A number that protects (a least length, a limit) becomes smaller.
bool lowers_number(const Change& change) {
  const auto number_in = [](std::string_view text, std::string& key) {
    long found = -1;
    each_setting(text, [&](std::string_view name, std::string_view value) {
      if (found >= 0 || value.empty() || !is_digit(value[0]) || value.size() > 9) return;
      char* rest = nullptr;
      const std::string number(value);
      found = std::strtol(number.c_str(), &rest, 10);
      constexpr std::pair<char, long> kUnits[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}, {'y', 31536000}};
      for (const auto& [unit, seconds] : kUnits) found *= *rest == unit ? seconds : 1;
      key = key_of(name);
    });
    return found;
  };
  std::string before_key, after_key;
  const long before = number_in(change.removed, before_key), after = number_in(change.added, after_key);
  const bool lasts = has_part(kLasting, before_key);
  if (lasts && before > 0 && before_key == after_key) return after > 10 * before;
  const bool least = before_key.find("min") != std::string::npos || before_key.find("rounds") != std::string::npos ||
                     before_key.find("bits") != std::string::npos;
  return before > 0 && after >= 0 && after * 2 < before && before_key == after_key && least;
}

}  // namespace

bool is_prose(std::string_view path) {
  const std::string name = lower(file_name(path));
  const std::size_t dot = name.rfind('.');
  return dot != std::string::npos && has_word("md txt rst adoc html htm csv tsv tex org vcf ipynb", name.substr(dot + 1));
}

std::vector<Atom> brought_by(const Change& change) {
  const std::string_view added = std::string_view(change.added).substr(0, kMostText);
  std::vector<Atom> atoms;
  std::string apart(added);  // KEY=value
  std::ranges::replace(apart, '=', ' ');
  std::vector<Atom> all = find_atoms(added);
  std::ranges::move(find_atoms(apart), std::back_inserter(all));
  for (Atom& atom : all) {
    const bool called = added.find(atom.text + "(") != std::string_view::npos;
    const bool host = (atom.kind == Atom::Kind::kUrl || atom.kind == Atom::Kind::kHost) && !called && is_likely_host(atom);
    if (host || is_account(atom)) add_once(atoms, std::move(atom));
  }
  add_keys(added, atoms);
  if (change.path.empty() || is_manifest(change.path)) add_packages(added, atoms);
  if (!change.path.empty() && !is_prose(change.path)) add_values(added, atoms);
  std::erase_if(atoms, [&](const Atom& atom) { return change.removed.find(atom.text) != std::string::npos; });
  return atoms;
}

bool replaces_like(const Change& change) {
  if (change.removed.empty()) return false;
  const std::vector<Atom> old = brought_by({.path = change.path, .added = change.removed, .removed = change.added});
  return !old.empty() && !brought_by(change).empty();
}

bool lowers_protection(const Change& change) {
  const std::string added = squeezed(change.added), removed = squeezed(change.removed);
  const bool known = std::ranges::any_of(kWeak, [&](std::string_view weak) {
    return added.find(weak) != std::string::npos && removed.find(weak) == std::string::npos;
  });
  if (known || (switches_off(change.added) && !switches_off(change.removed)) || lowers_number(change)) return true;
  if (change.removed.empty()) return false;
  const std::vector<std::string> left = guards_in(change.added);
  return std::ranges::any_of(guards_in(change.removed),
                             [&](const std::string& guard) { return std::ranges::find(left, guard) == left.end(); });
}

void add_expression(std::string_view expression, Change& change) {
  for (std::size_t at = 0; at < expression.size(); ++at) {
    if (expression[at] != 's' || at + 1 >= expression.size() || is_key_byte(expression[at + 1]) || expression[at + 1] == ' ')
      continue;
    const char mark = expression[at + 1];
    const std::size_t middle = expression.find(mark, at + 2);
    const std::size_t end = middle == std::string_view::npos ? middle : expression.find(mark, middle + 1);
    if (end == std::string_view::npos) break;
    change.removed.append(expression.substr(at + 2, middle - at - 2)).append(1, '\n');
    change.added.append(expression.substr(middle + 1, end - middle - 1)).append(1, '\n');
    at = end;
  }
  if (expression.ends_with("/d")) change.removed.append(expression).append(1, '\n');
  std::erase(change.removed, '\\');
  if (change.added.empty() && !expression.ends_with("d")) change.added = expression;
}

void add_diff(std::string_view patch, std::string_view path, std::vector<Change>& changes) {
  changes.push_back({.path = std::string(path), .added = {}, .removed = {}});
  while (!patch.empty()) {
    const std::string_view line = patch.substr(0, patch.find('\n'));
    patch.remove_prefix(std::min(line.size() + 1, patch.size()));
    if (line.starts_with("+++ ") || line.starts_with("*** Add File: ") || line.starts_with("*** Update File: ")) {
      std::string_view name = line.substr(line.find(line.starts_with('+') ? " " : ": ") + (line.starts_with('+') ? 1 : 2));
      if (name.starts_with("b/")) name.remove_prefix(2);
      changes.push_back({.path = std::string(name.substr(0, name.find_first_of("\t\r"))), .added = {}, .removed = {}});
    } else if (line.starts_with("--- ")) {
      continue;
    } else if (line.starts_with('+')) {
      changes.back().added.append(line.substr(1)).append(1, '\n');
    } else if (line.starts_with('-')) {
      changes.back().removed.append(line.substr(1)).append(1, '\n');
    }
  }
}

}  // namespace belljar::guard
