// Concrete strings in running text, and what they are: URLs, addresses, hosts, paths, amounts, account
// numbers.
//
// The text is cut into tokens at blanks, quotes and brackets, and a token is classified by its shape alone,
// the most specific shape first. Names of files and of hosts look alike (`main.rs`, `main.io`), so a list of
// known file endings decides between the two. A wrong class costs little: the same string is looked for in
// the texts either way, and only the spellings under which it is looked for differ (trace.cc).
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detect/ascii.h"
#include "guard/call.h"

namespace belljar::guard {

using detect::is_digit;
using detect::is_letter;
using detect::is_upper;

namespace {

bool is_alnum(char c) noexcept { return is_letter(c) || is_digit(c); }

// What a token may hold; brackets and quotes end it.
bool in_token(char c) noexcept { return is_alnum(c) || std::string_view("@._-/:~+%?=&#*$\\").find(c) != std::string_view::npos; }

bool is_account_number(std::string_view token) noexcept {
  const bool iban = token.size() >= 12 && is_upper(token[0]) && is_upper(token[1]) && is_digit(token[2]) && is_digit(token[3]) &&
                    std::ranges::all_of(token, is_alnum);
  const bool number = token.size() >= 8 && std::ranges::all_of(token, [](char c) { return is_digit(c) || c == '-'; });
  const bool wallet =
      token.size() >= 26 && (token.starts_with("0x") || token.starts_with("bc1")) && std::ranges::all_of(token, is_alnum);
  return iban || number || wallet;
}

// A name with a dot whose last label could be a top level domain, and no name of a file we know.
bool is_host(std::string_view token) noexcept {
  const std::string_view host = token.substr(0, token.find_first_of(":/?#"));
  const std::size_t dot = host.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || host.size() - dot < 3) return false;
  const bool name = std::ranges::all_of(host, [](char c) { return is_alnum(c) || c == '-' || c == '.'; });
  const bool number = std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
  if (number) return std::ranges::count(host, '.') == 3;
  if (!name || !std::ranges::all_of(host.substr(dot + 1), is_letter)) return false;
  constexpr std::string_view kFiles[] = {"md",   "txt",  "cc",   "cpp",     "py",   "js",  "ts",  "sh",  "rs",    "go",
                                         "json", "toml", "yaml", "yml",     "html", "css", "csv", "log", "png",   "jpg",
                                         "pdf",  "lock", "cfg",  "conf",    "ini",  "xml", "sql", "db",  "bak",   "tmp",
                                         "gz",   "tar",  "zip",  "java",    "rb",   "pem", "key", "env", "docx",  "xlsx",
                                         "tsx",  "jsx",  "mk",   "service", "out",  "bin", "so",  "tsv", "patch", "diff"};
  return token.find('/') != std::string_view::npos || std::ranges::find(kFiles, host.substr(dot + 1)) == std::end(kFiles);
}

bool is_address(std::string_view token) noexcept {
  const std::size_t at = token.find('@');
  return at != std::string_view::npos && at > 0 && token.find('@', at + 1) == std::string_view::npos &&
         is_host(token.substr(at + 1)) && token.substr(0, at).find_first_of("/:") == std::string_view::npos;
}

bool is_amount(std::string_view token) noexcept {
  return token.size() <= 16 && is_digit(token[0]) &&
         std::ranges::all_of(token, [](char c) { return is_digit(c) || c == '.' || c == ','; });
}

bool is_path(std::string_view token) noexcept {
  if (token.find('/') != std::string_view::npos) return token.find_first_not_of("/.") != std::string_view::npos || token == "/";
  const std::size_t dot = token.rfind('.');
  if (dot == 0) return token.size() > 2 && is_letter(token[1]);  // .env
  return dot != std::string_view::npos && dot + 1 < token.size() && token.size() - dot <= 8 && is_letter(token[dot + 1]);
}

// AT48 3200 0000 1234 5864: an account in groups, as people write it, and how long it is in the text.
std::pair<std::string, std::size_t> grouped_account(std::string_view text) {
  constexpr std::size_t kFewest = 14, kMost = 42;
  std::string number;
  std::size_t at = 0;
  while (at < text.size() && at < kMost) {
    std::size_t end = at;
    while (end < text.size() && is_alnum(text[end])) ++end;
    const std::string_view group = text.substr(at, end - at);
    const bool whole = group.size() == 4, last = group.size() < 4 && !group.empty();
    if (!(whole || last) || (number.empty() && !(whole && is_upper(group[0]) && is_upper(group[1]) && is_digit(group[2])))) break;
    if (!number.empty() && std::ranges::none_of(group, is_digit)) break;
    number += group;
    at = end;
    if (last || at >= text.size() || text[at] != ' ') break;
    ++at;
  }
  while (at > 0 && text[at - 1] == ' ') --at;
  if (number.size() < kFewest || !is_account_number(number)) return {{}, 0};
  return {number, at};
}

void classify(std::string_view token, std::vector<Atom>& atoms) {
  while (!token.empty() && std::string_view(".:,?&-=+").find(token.back()) != std::string_view::npos) token.remove_suffix(1);
  while (!token.empty() && std::string_view(":=&?").find(token.front()) != std::string_view::npos) token.remove_prefix(1);
  if (token.size() < 2) return;
  if (token.find("://") != std::string_view::npos) atoms.push_back({Atom::Kind::kUrl, std::string(token)});
  else if (token.starts_with("mailto:")) atoms.push_back({Atom::Kind::kAddress, std::string(token.substr(7))});
  else if (is_address(token)) atoms.push_back({Atom::Kind::kAddress, std::string(token)});
  else if (is_account_number(token)) atoms.push_back({Atom::Kind::kName, std::string(token)});
  else if (is_amount(token)) atoms.push_back({Atom::Kind::kAmount, std::string(token)});
  else if (is_host(token)) atoms.push_back({Atom::Kind::kHost, std::string(token)});
  else if (is_path(token)) atoms.push_back({Atom::Kind::kPath, std::string(token)});
}

}  // namespace

std::string_view to_string(Atom::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"path", "host", "url", "address", "amount", "name", "command"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_account(const Atom& atom) noexcept {
  return atom.kind == Atom::Kind::kAddress || (atom.kind == Atom::Kind::kName && is_account_number(atom.text));
}

std::vector<Atom> find_atoms(std::string_view text) {
  std::vector<Atom> atoms;
  for (std::size_t at = 0; at < text.size() && atoms.size() < kMostAtoms;) {
    if (!in_token(text[at])) {
      ++at;
      continue;
    }
    if (is_upper(text[at])) {
      if (const auto [number, length] = grouped_account(text.substr(at)); length > 0) {
        atoms.push_back({Atom::Kind::kName, number});
        at += length;
        continue;
      }
    }
    std::size_t end = at;
    while (end < text.size() && in_token(text[end])) ++end;
    if (end - at <= 2048) classify(text.substr(at, end - at), atoms);
    at = end;
  }
  return atoms;
}

}  // namespace belljar::guard
