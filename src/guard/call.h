// A proposed call taken apart into acts: what each would do, and the strings that decide to whom or to what.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/turn.h"
#include "shell/script.h"

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
  std::string said = {};                // of a tool: its name, keys and values, but what it takes away
  bool of_file = false;           // of code in a file that was written before and is run now: most of it is about nobody's words
  std::string file = {};          // of such code: which file
  std::vector<Atom> brings = {};  // of a change: what it puts into a file or a setting that was not there (changes.h)
  bool copies_secret = false;     // puts a secret's content under another name
  bool replaces = false;          // of a change: what it brings stands in the place of another of its kind
  bool weakens = false;           // of a change: it lowers a protection
  bool whole = false;             // of a change: all of a file is written
  bool tells = false;             // of a change: a whole text for people, which may repeat what it was made from
  bool outward = false;           // of a tool that no table knows, or that sets something elsewhere than in a file
  std::vector<std::string> inputs = {};  // of a command: files that it reads by `<`
  std::string directory = {};  // of a command: where fixed `cd` words led, absolute; empty: unknown, or where the call began
  bool operator==(const Act&) const = default;
};

// Text that a call puts into a file, as far as it stands in the call.
struct WrittenFile {
  std::string path, text;
  bool whole = true;    // all that will be in it; else a part
  bool at_end = false;  // a part that is put at the end, byte by byte
  bool decided = true;  // false: something else is in it that only the run decides: a part of another file
};

struct Call {
  std::vector<Act> acts;
  std::vector<std::string> secrets;  // paths of secrets it touches
  std::vector<std::string> copies;   // where it puts what it takes out of secrets
  std::vector<std::string> texts;    // all strings of the call, as they are
  std::vector<std::string> shows;    // files whose text a command would show, as they are named; or the command
  std::vector<WrittenFile> writes;   // in their order
  std::vector<std::pair<std::string, std::string>> moves;  // files under another name: cp, mv, ln; before `writes`
  std::string unread;                                      // why a command could not be read; empty: all was
  std::string cwd;                                         // where a tool's argument has a command begin; empty: the workspace
  std::string undecided;                                   // why only the run decides what is run; empty: it does not
};

// At most this much of arguments is taken apart; more is unread.
inline constexpr std::size_t kMaxArguments = 4U << 20;

Call read_call(const ProposedCall& call, shell::ShellReader& reader);
// It fetches or sends: what it says may have come over the network.
bool talks(const Call& call) noexcept;
// One name for the files that the call shows: a secret's if one is among them, otherwise all of them. Empty:
// it shows none.
std::string name_of_shown(const Call& call);

// URLs, addresses, hosts, paths, amounts and account numbers in running text, the first kMostAtoms.
inline constexpr std::size_t kMostAtoms = 256;
std::vector<Atom> find_atoms(std::string_view text);
// A number or an address that money or messages go to: an account, a wallet, somebody@host.
bool is_account(const Atom& atom) noexcept;

// Of one simple command; adds to `call`. `script` is the whole, for what its pipes carry.
void read_command(const shell::Script& script, const shell::SimpleCommand& command, Call& call);
// Code of another language in a word or a here-document: what it calls and the strings in it.
// `named`: where those strings stand.
void read_code(std::string_view code, std::string_view what, Call& call, std::string_view named);
// A shell's text, with what it reads.
void read_script(const std::string& text, shell::ShellReader& reader, Call& call, std::string_view input = {});

// Of one simple command, for Call::shows and Call::writes; the second of a tool's argument.
void note_shown(const shell::SimpleCommand& command, Call& call);
void note_written(const shell::Script& script, const shell::SimpleCommand& command, Call& call);
void note_written(std::string_view path, std::string_view key, std::string_view text, Call& call);
// Lines that a diff adds, file by file.
void add_patch(std::string_view patch, std::vector<WrittenFile>& writes);
// What the command changes in files and settings, for the acts from `first` on.
void note_change(const shell::Script& script, const shell::SimpleCommand& command, std::size_t first, Call& call);

// Which files an act runs, and whether all tests.
struct RunFiles {
  std::vector<std::string> files;  // as they are named
  std::vector<std::string> below;  // directories whose files are run: hooks
  bool tests = false;
};
RunFiles files_run(const Act& act);
// Code of another language than a shell's that stands in the command: `python3 -c CODE`, `awk PROGRAM`. Empty: none does.
std::string inline_code(const Act& act);
// By its last component: where `cd` led is not looked at.
bool is_run_by(const RunFiles& run, std::string_view path);
// A test by its name, in a language that test runners run.
bool is_test_code(std::string_view name) noexcept;
// Adds the commands that code starts in its own words.
void read_started(std::string_view code, shell::ShellReader& reader, Call& call);
// Adds what the text of a file would do that `run` runs. Of code that is no shell's only what stands in quotes counts as a target.
void read_file_code(const WrittenFile& file, const Act& run, shell::ShellReader& reader, Call& call);
// An interpreter of files by its name: a shell, python, node ... (daily.cc)
bool runs_files(std::string_view program) noexcept;
// The thing that such a program was told to run, and the index of its word: a file, code in an argument, a
// module by its name.
enum class Runs : std::uint8_t { kNothing, kFile, kCode, kModule };
std::pair<Runs, std::size_t> find_run(const std::vector<std::string>& words);
// A path that is written to: by a tool, a redirection, cp. Classes it and adds the act.
void add_write(std::string_view path, std::string what, Call& call);

}  // namespace belljar::guard
