// The keys of git-config(1) that run nothing and point nowhere, and what their values may be. Data, with the judge of one value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace belljar::broker {

// What a value of an allowed key may be. Control characters are refused in all of them.
enum class GitValue : std::uint8_t {
  kAny,
  kOff,        // false, no, off, 0: switching it on is what is dangerous
  kOn,         // true, yes, on, 1 or nothing: switching it off is what is dangerous
  kUrl,        // a place to fetch from or push to, or a remote's name
  kPlain,      // no leading dash, no `!`
  kRefspec,    // no leading dash
  kText,       // may hold line ends
  kUpdate,     // submodule.*.update: no command
  kRefFormat,  // extensions.refStorage: files or reftable
  kAlias,      // a few subcommands with a few flags
  kLfs,        // the very words that `git lfs install` writes
  kWorkTree,   // core.worktree: the caller knows where the file lies
  kPromisor,   // a remote that git asks unbidden for what is missing: the caller knows its URL
  kTitle,      // rebase.instructionFormat: fields of one line each, for it becomes a line of the list that a rebase works through
  kComment,    // what starts a comment in that list: signs only, so that a comment is never read as a step
  kEncoding,   // one in which ASCII is ASCII: what git writes for itself keeps its lines
  kPush,       // what a plain `git push` sends: nothing by force, and nothing that removes
  kMirror,     // a push that removes what is not here: the caller knows whether it is a repository that only mirrors
  kNames,      // words without a colon: names of remotes, and no URLs
  kSharing,    // who may read and write git's own files: not everybody write
  kInFile,     // a path that git reads and shows no more of than its lines: relative, and not up
};

// `key` as parse_git_config() gives it. None: the key is not on the list.
std::optional<GitValue> find_git_key(std::string_view key);
// Whether a value is one of its kind; `value` none is git's `true`. Not for kWorkTree, kPromisor and kMirror.
bool is_inert_value(GitValue kind, std::optional<std::string_view> value);

// A URL or path for git's transports without a helper of its own, without an option in disguise. git-fetch(1), "GIT URLS".
bool is_harmless_url(std::string_view url);

}  // namespace belljar::broker
