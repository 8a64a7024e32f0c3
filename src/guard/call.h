// A proposed call taken apart into acts: what each would do, and the strings that decide to whom or to what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/turn.h"
#include "guard/shell.h"

namespace belljar::guard {

struct Atom {
  enum class Kind { kPath, kHost, kUrl, kAddress, kAmount, kName, kCommand };
  Kind kind = Kind::kName;
  std::string text;
  bool operator==(const Atom&) const = default;
};
std::string_view to_string(Atom::Kind kind) noexcept;

struct Act {
  CallClass kind = CallClass::kRunning;
  std::string what;                     // one line for people: "rm -rf src"
  std::vector<Atom> atoms;              // that decide: targets, destinations
  bool payload = false;                 // of kSending and kFetching: carries content of files or of other commands
  std::vector<std::string> words = {};  // of a simple command: the program and its arguments, as it would get them
  bool operator==(const Act&) const = default;
};

struct Call {
  std::vector<Act> acts;
  std::vector<std::string> secrets;  // paths of secrets it touches
  std::vector<std::string> copies;   // where it puts what it takes out of secrets
  std::vector<std::string> texts;    // all strings of the call, as they are
  std::string unread;                // why a part could not be read; empty: all was
};

// At most this much of arguments is taken apart; more is unread.
inline constexpr std::size_t kMaxArguments = 4U << 20;

Call read_call(const ProposedCall& call, ShellReader& reader);
// It fetches or sends: what it says may have come over the network.
bool talks(const ProposedCall& call, ShellReader& reader);

// URLs, addresses, hosts, paths, amounts and account numbers in running text, the first kMostAtoms.
inline constexpr std::size_t kMostAtoms = 256;
std::vector<Atom> find_atoms(std::string_view text);
// A number or an address that money or messages go to: an account, a wallet, somebody@host.
bool is_account(const Atom& atom) noexcept;

// Of one simple command; adds to `call`. `script` is the whole, for what its pipes carry.
void read_part(const Script& script, const Part& part, Call& call);
// Code of another language in a word or a here-document: what it calls and the strings in it.
void read_code(std::string_view code, std::string_view what, Call& call);
// A path that is written to: by a tool, a redirection, cp. Classes it and adds the act.
void add_write(std::string_view path, std::string what, Call& call);

}  // namespace belljar::guard
