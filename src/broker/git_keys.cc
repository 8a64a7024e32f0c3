// The settings of git that run nothing, as a table; everything that is not in it is objected to.
//
// A key is looked up in three forms: as it is, as section..name for any subsection, and as a member of a
// section that is inert as a whole but for some names. A row may restrict the value as well (GitValue): on or
// off only, a URL of a known scheme, one of git's own words. Git adds settings with each release, and an
// unknown one may run a program, so what is new is refused until somebody has looked at it.
//
// Aliases are accepted when they consist of subcommands and options that are listed one by one: `-c`,
// `--output` and `--upload-pack` make a harmless subcommand run or write something.
#include "broker/git_keys.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace belljar::broker {
namespace {

// section.name, or section..name for any subsection (one pattern with an empty middle). Sorted by hand within a section; searched
// from the start, a config has few entries.
struct Row {
  std::string_view key;
  GitValue value = GitValue::kAny;
};

constexpr Row kRows[] = {
    {"core.bare"},
    {"core.filemode"},
    {"core.repositoryformatversion"},
    {"core.ignorecase"},
    {"core.symlinks"},
    {"core.precomposeunicode"},
    {"core.protecthfs", GitValue::kOn},
    {"core.protectntfs"},  // names of NTFS, which an index is judged by (git_index.h)
    {"core.fsmonitor", GitValue::kOff},
    {"core.logallrefupdates"},
    {"core.autocrlf"},
    {"core.eol"},
    {"core.safecrlf"},
    {"core.checkroundtripencoding"},
    {"core.hidedotfiles"},
    {"core.trustctime"},
    {"core.checkstat"},
    {"core.quotepath"},
    {"core.compression"},
    {"core.loosecompression"},
    {"core.bigfilethreshold"},
    {"core.packedgitwindowsize"},
    {"core.packedgitlimit"},
    {"core.deltabasecachelimit"},
    {"core.sharedrepository", GitValue::kSharing},
    {"core.abbrev"},
    {"core.sparsecheckout"},
    {"core.sparsecheckoutcone"},
    {"core.untrackedcache"},
    {"core.preloadindex"},
    {"core.splitindex"},
    {"core.multipackindex"},
    {"core.commitgraph"},
    {"core.commentchar", GitValue::kComment},
    {"core.whitespace"},
    {"core.fsync"},
    {"core.fsyncmethod"},
    {"core.fsyncobjectfiles"},
    {"core.createobject"},
    {"core.warnambiguousrefs"},
    {"core.fscache"},
    {"core.longpaths"},
    {"core.maxtreedepth"},
    {"core.worktree", GitValue::kWorkTree},
    {"user.name"},
    {"user.email"},
    {"user.useconfigonly"},
    {"author.name"},
    {"author.email"},
    {"committer.name"},
    {"committer.email"},
    {"init.defaultbranch", GitValue::kPlain},
    {"remote.pushdefault", GitValue::kUrl},
    {"remote..url", GitValue::kUrl},
    {"remote..pushurl", GitValue::kUrl},
    {"remote..fetch", GitValue::kRefspec},
    {"remote..push", GitValue::kPush},
    {"remote..tagopt"},
    {"remote..mirror", GitValue::kMirror},
    {"remote..prune"},
    {"remote..prunetags"},
    {"remote..skipdefaultupdate"},
    {"remote..skipfetchall"},
    // With a promisor remote git diff and git status ask its URL for objects that are missing: whoever runs them on the host sends
    // the command's words there. So it has to be one that the command itself may reach.
    {"remote..promisor", GitValue::kPromisor},
    {"extensions.partialclone", GitValue::kPromisor},
    {"remote..partialclonefilter", GitValue::kPlain},
    {"remote..gh-resolved"},
    {"branch.sort", GitValue::kPlain},
    {"branch..remote", GitValue::kUrl},
    {"branch..pushremote", GitValue::kUrl},
    {"branch..merge", GitValue::kRefspec},
    {"branch..description", GitValue::kText},
    {"branch..vscode-merge-base", GitValue::kPlain},
    {"branch..gh-merge-base", GitValue::kPlain},
    {"branch..github-pr-owner-number", GitValue::kPlain},
    {"branch..base", GitValue::kPlain},
    {"push.default"},
    {"push.followtags"},
    {"push.autosetupremote"},
    {"push.recursesubmodules"},
    {"push.useforceifincludes"},
    {"push.negotiate"},
    {"pull.rebase"},
    {"pull.ff"},
    {"merge.ff"},
    {"merge.conflictstyle"},
    {"merge.renames"},
    {"merge.renamelimit"},
    {"merge.directoryrenames"},
    {"merge.stat"},
    {"merge.log"},
    {"merge.branchdesc"},
    {"merge.renormalize"},
    {"merge.autostash"},
    {"merge.defaulttoupstream"},
    {"merge.verbosity"},
    {"commit.gpgsign"},
    {"commit.cleanup"},
    {"commit.status"},
    {"commit.verbose"},
    {"tag.gpgsign"},
    {"tag.sort", GitValue::kPlain},
    {"log.date", GitValue::kPlain},
    {"diff.algorithm"},
    {"diff.renames"},
    {"diff.renamelimit"},
    {"diff.mnemonicprefix"},
    {"diff.noprefix"},
    {"diff.colormoved"},
    {"diff.colormovedws"},
    {"diff.context"},
    {"diff.interhunkcontext"},
    {"diff.submodule"},
    {"diff.ignoresubmodules"},
    {"diff.wserrorhighlight"},
    {"diff.indentheuristic"},
    {"diff.autorefreshindex"},
    {"diff.statgraphwidth"},
    {"diff.relative"},
    {"diff..binary"},
    {"gc.auto"},
    {"gc.autopacklimit"},
    {"gc.autodetach"},
    {"gc.bigpackthreshold"},
    {"gc.writecommitgraph"},
    {"gc.logexpiry"},
    {"gc.packrefs"},
    {"gc.cruftpacks"},
    {"gc.aggressivedepth"},
    {"gc.aggressivewindow"},
    {"gc.pruneexpire"},
    {"gc.worktreepruneexpire"},
    {"gc.reflogexpire"},
    {"gc.reflogexpireunreachable"},
    {"gc..reflogexpire"},
    {"gc..reflogexpireunreachable"},
    {"gc.rerereresolved"},
    {"gc.rerereunresolved"},
    {"maintenance.auto"},
    {"maintenance.autodetach"},
    {"maintenance.strategy"},
    {"maintenance..enabled"},
    {"maintenance..schedule"},
    {"repack.usedeltabaseoffset"},
    {"repack.usedeltaislands"},
    {"repack.packkeptobjects"},
    {"repack.writebitmaps"},
    {"repack.updateserverinfo"},
    {"pack.window"},
    {"pack.depth"},
    {"pack.windowmemory"},
    {"pack.compression"},
    {"pack.deltacachesize"},
    {"pack.deltacachelimit"},
    {"pack.threads"},
    {"pack.indexversion"},
    {"pack.packsizelimit"},
    {"pack.usebitmaps"},
    {"pack.usesparse"},
    {"pack.writebitmaphashcache"},
    {"pack.writereverseindex"},
    {"extensions.objectformat", GitValue::kPlain},
    {"extensions.compatobjectformat", GitValue::kPlain},
    {"extensions.noop"},
    {"extensions.preciousobjects"},
    {"extensions.worktreeconfig"},
    {"extensions.relativeworktrees"},
    {"extensions.refstorage", GitValue::kRefFormat},
    {"submodule.recurse"},
    {"submodule.active"},
    {"submodule.fetchjobs"},
    {"submodule.propagatebranches"},
    {"submodule.alternatelocation"},
    {"submodule.alternateerrorstrategy"},
    {"submodule..url", GitValue::kUrl},
    {"submodule..path", GitValue::kPlain},
    {"submodule..active"},
    {"submodule..branch", GitValue::kPlain},
    {"submodule..ignore"},
    {"submodule..shallow"},
    {"submodule..fetchrecursesubmodules"},
    {"submodule..update", GitValue::kUpdate},
    {"worktree.guessremote"},
    {"worktree.userelativepaths"},
    {"checkout.defaultremote", GitValue::kPlain},
    {"uploadpack.allowfilter"},
    {"uploadpack.allowanysha1inwant"},
    {"uploadpack.allowreachablesha1inwant"},
    {"uploadpack.allowtipsha1inwant"},
    {"uploadpack.allowrefinwant"},
    {"transfer.fsckobjects", GitValue::kOn},
    {"http.postbuffer"},
    {"http.version"},
    {"http.lowspeedlimit"},
    {"http.lowspeedtime"},
    {"http.maxrequests"},
    {"protocol.version"},
    {"i18n.commitencoding", GitValue::kEncoding},
    {"i18n.logoutputencoding", GitValue::kEncoding},
    {"sparse.expectfilesoutsideofpatterns"},
    {"lfs.repositoryformatversion"},
    {"lfs.locksverify"},
    {"lfs..locksverify"},
    {"lfs..access"},
    {"filter.lfs.clean", GitValue::kLfs},
    {"filter.lfs.smudge", GitValue::kLfs},
    {"filter.lfs.process", GitValue::kLfs},
    {"filter.lfs.required"},

    {"blame.ignorerevsfile", GitValue::kInFile},
    {"core.usereplacerefs"},
    {"core.prefersymlinkrefs", GitValue::kOff},
    {"core.ignorestat"},
    {"core.notesref", GitValue::kRefspec},
    {"core.packedrefstimeout"},
    {"core.filesreflocktimeout"},
    {"core.commentstring", GitValue::kComment},
    {"core.excludesfile", GitValue::kInFile},
    {"core.alternaterefsprefixes"},
    {"credential.usehttppath"},
    {"credential.username", GitValue::kPlain},
    {"diff..cachetextconv"},
    {"diff..funcname"},
    {"diff..xfuncname"},
    {"diff..wordregex"},
    {"diff..whitespace"},
    {"diff..algorithm"},
    {"diff.dirstat"},
    {"diff.wordregex"},
    {"diff.suppressblankempty"},
    {"diff.orderfile", GitValue::kInFile},
    {"fastimport.unpacklimit"},
    {"fetch.fsckobjects", GitValue::kOn},
    {"format.attach"},
    {"format.cc"},
    {"format.coverfromdescription"},
    {"format.coverletter"},
    {"format.encodeemailheaders"},
    {"format.filenamemaxlength"},
    {"format.forceinbodyfrom"},
    {"format.from"},
    {"format.headers", GitValue::kText},
    {"format.mboxrd"},
    {"format.notes"},
    {"format.numbered"},
    {"format.pretty"},
    {"format.signoff"},
    {"format.signature", GitValue::kText},
    {"format.subjectprefix"},
    {"format.thread"},
    {"format.to"},
    {"format.useautobase"},
    {"help.autocorrect"},
    {"help.format", GitValue::kPlain},
    {"http.useragent"},
    {"interactive.singlekey"},
    {"merge.suppressdest"},
    {"merge..name"},
    {"merge..recursive", GitValue::kPlain},
    {"pack.allowpackreuse"},
    {"pack.island"},
    {"pack.islandcore"},
    {"pack.preferbitmaptips"},
    {"pack.writebitmaplookuptable"},
    {"push.pushoption"},
    {"push.usebitmaps"},
    {"push.gpgsign"},
    {"remote..followremotehead"},
    {"remote..serveroption"},
    {"rebase.instructionformat", GitValue::kTitle},
    {"receive.fsckobjects", GitValue::kOn},
    {"repack.cruftthreads"},
    {"repack.cruftwindow"},
    {"repack.cruftwindowmemory"},
    {"repack.cruftdepth"},
    {"sendpack.sideband"},
    {"tag.forcesignannotated"},
    {"tar.umask"},
    {"uploadpack.hiderefs"},
    {"uploadpack.keepalive"},
    {"uploadpack.advertisebundleuris", GitValue::kOff},
    {"user.signingkey", GitValue::kPlain},
};

// Sections of git-config(1) in which nothing runs a program, leads elsewhere or weakens a check, whatever a later git adds to them;
// of the other sections the keys are named above. What is an exception to that stands beside it.
struct Section {
  std::string_view name;
  std::string_view not_these[3] = {};  // names of keys
};
constexpr Section kInertSections[] = {
    {"add"},
    {"advice"},
    {"am"},
    {"apply"},
    {"blame", {"ignorerevsfile"}},
    {"branch", {"mergeoptions", "remote", "pushremote"}},  // a merge strategy may be a program; URLs
    {"checkout"},
    {"clone"},
    {"color"},
    {"column"},
    {"commitgraph"},
    {"feature"},
    {"fetch", {"bundleuri", "bundlecreationtoken"}},
    {"grep"},
    {"index"},
    {"log", {"showsignature"}},  // runs gpg.program
    {"lsrefs"},
    {"mailinfo"},
    {"notes"},
    {"pretty"},
    {"rebase"},
    {"receive", {"certnonceseed"}},
    {"reflog"},
    {"rerere"},
    {"revert"},
    {"showbranch"},
    {"splitindex"},
    {"stash"},
    {"status"},
    {"transfer", {"fsckobjects", "bundleuri", "credentialsinurl"}},
    {"uploadarchive"},
    {"uploadpackfilter"},
    {"versionsort"},
};

struct Split {
  std::string_view section;
  std::string_view name;
  bool subsection = false;
};

bool in_inert_section(std::string_view key, const Split& split) {
  if (key.starts_with("fetch.fsck.") || key.starts_with("receive.fsck.")) return false;  // what a check lets pass
  return std::any_of(std::begin(kInertSections), std::end(kInertSections), [&](const Section& one) {
    return one.name == split.section && std::none_of(std::begin(one.not_these), std::end(one.not_these),
                                                     [&](std::string_view exception) { return exception == split.name; });
  });
}

Split split_key(std::string_view key) noexcept {
  const std::size_t first = key.find('.');
  const std::size_t last = key.rfind('.');
  if (first == std::string_view::npos) return {};
  return {key.substr(0, first), key.substr(last + 1), first != last};
}

bool covers(std::string_view row, std::string_view key, const Split& split) noexcept {
  if (row == key) return true;
  const std::size_t dots = row.find("..");
  return dots != std::string_view::npos && split.subsection && row.substr(0, dots) == split.section &&
         row.substr(dots + 2) == split.name;
}

bool has_control(std::string_view text, bool line_ends) noexcept {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && !(line_ends && (c == '\n' || c == '\r' || c == '\t'))) || byte == 0x7F;
  });
}

template <std::size_t N>
bool one_of(std::string_view text, const std::string_view (&list)[N]) noexcept {
  return std::any_of(std::begin(list), std::end(list), [&](std::string_view one) { return iequals(text, one); });
}

constexpr std::string_view kFalse[] = {"false", "no", "off", "0", ""};
constexpr std::string_view kTrue[] = {"true", "yes", "on", "1"};
constexpr std::string_view kUpdates[] = {"checkout", "rebase", "merge", "none"};
constexpr std::string_view kSchemes[] = {"https", "http", "ssh", "git", "git+ssh", "ssh+git", "file", "ftp", "ftps"};
constexpr std::string_view kLfsWords[] = {"git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f",
                                          "git-lfs filter-process", "git-lfs filter-process --skip"};

// An alias may hold options of git itself (`-c core.pager=...`) and of subcommands that run or write something (`--output`,
// `--upload-pack`), so both are named one by one.
constexpr std::string_view kAliasCommands[] = {"status",    "log",         "branch", "checkout", "commit", "switch",  "show",
                                               "diff",      "stash",       "tag",    "add",      "reset",  "restore", "remote",
                                               "rev-parse", "cherry-pick", "merge",  "rebase",   "pull",   "fetch",   "push"};
constexpr std::string_view kAliasFlags[] = {"--oneline",
                                            "--graph",
                                            "--all",
                                            "--decorate",
                                            "--stat",
                                            "--short",
                                            "--branch",
                                            "-s",
                                            "-b",
                                            "-sb",
                                            "-a",
                                            "-v",
                                            "-vv",
                                            "-m",
                                            "-am",
                                            "-p",
                                            "--amend",
                                            "--no-edit",
                                            "--cached",
                                            "--staged",
                                            "--name-only",
                                            "--name-status",
                                            "--abbrev-commit",
                                            "--color",
                                            "-1",
                                            "-10",
                                            "--list",
                                            "head"};

bool is_inert_alias(std::string_view value) noexcept {
  bool first = true;
  while (!value.empty()) {
    const std::string_view word = value.substr(0, value.find(' '));
    value.remove_prefix(std::min(value.size(), word.size() + 1));
    if (first ? !one_of(word, kAliasCommands) : !one_of(word, kAliasFlags)) return false;
    first = false;
  }
  return !first;
}

// A user format of git-log(1), "PRETTY FORMATS": without `%` it would be the name of another one, which may say anything. A subject
// and a name are one line; a body, a date (log.date) and `%n` need not be.
bool is_one_line_format(std::string_view format) noexcept {
  constexpr std::string_view kFields[] = {"s",  "h",  "H",  "t",  "T",  "p",  "P",  "d",  "D",  "an", "ae",
                                          "al", "aN", "aE", "aL", "cn", "ce", "cl", "cN", "cE", "cL", "ar",
                                          "as", "at", "ai", "aI", "cr", "cs", "ct", "ci", "cI"};
  bool user_format = false;
  for (std::size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%', at + 1)) {
    const std::string_view rest = format.substr(at + 1);
    if (std::none_of(std::begin(kFields), std::end(kFields), [&](std::string_view field) { return rest.starts_with(field); }))
      return false;
    user_format = true;
  }
  return user_format;
}

bool is_comment_mark(std::string_view value) noexcept {
  return value == "auto" || (!value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
           return std::string_view("#;/%@&|*+=<>^~!?:,.'`\"$").find(c) != std::string_view::npos;
         }));
}

bool keeps_ascii(std::string_view encoding) noexcept {
  constexpr std::string_view kEncodings[] = {"utf-8",       "utf8",  "us-ascii",  "ascii",     "iso-8859-", "iso8859-", "latin",
                                             "windows-125", "cp125", "koi8-",     "euc-",      "eucjp",     "gbk",      "gb18030",
                                             "gb2312",      "big5",  "shift_jis", "shift-jis", "sjis"};
  return encoding.find('/') == std::string_view::npos &&
         std::any_of(std::begin(kEncodings), std::end(kEncodings),
                     [&](std::string_view one) { return iequals(encoding.substr(0, one.size()), one); });
}

}  // namespace

// A remote helper is `NAME::rest` or an unknown `NAME://rest`; git runs git-remote-NAME for both (gitremote-helpers(7)).
bool is_harmless_url(std::string_view url) {
  if (url.empty() || url.front() == '-' || has_control(url, false)) return false;
  const std::size_t colon = url.find(':');
  const std::size_t slash = url.find('/');
  if (colon == std::string_view::npos || (slash != std::string_view::npos && slash < colon))
    return true;  // a path or a remote's name
  const std::string_view before = url.substr(0, colon);
  std::string_view after = url.substr(colon + 1);
  if (after.starts_with(':')) return false;
  if (!after.starts_with("//")) return before.find("@-") == std::string_view::npos && !after.starts_with('-');  // host:path
  after.remove_prefix(2);
  const std::string_view host = after.substr(0, after.find('/'));
  const std::size_t at = host.rfind('@');
  const bool option = host.starts_with('-') || (at != std::string_view::npos && host.substr(at + 1).starts_with('-'));
  return one_of(before, kSchemes) && !option;
}

std::optional<GitValue> find_git_key(std::string_view key) {
  const Split split = split_key(key);
  if (split.section == "alias") return GitValue::kAlias;
  if (split.section == "remotes" && !split.subsection) return GitValue::kNames;  // groups of git-remote(1), by any name
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return covers(one.key, key, split); });
  if (row != std::end(kRows)) return row->value;
  return in_inert_section(key, split) ? std::optional(GitValue::kAny) : std::nullopt;
}

bool is_inert_value(GitValue kind, std::optional<std::string_view> value) {
  if (!value) return kind == GitValue::kAny || kind == GitValue::kOn;
  if (has_control(*value, kind == GitValue::kText)) return false;
  switch (kind) {
    case GitValue::kAny:
    case GitValue::kText:
      return true;
    case GitValue::kOff:
      return one_of(*value, kFalse);
    case GitValue::kOn:
      return one_of(*value, kTrue);
    case GitValue::kUrl:
      return is_harmless_url(*value);
    case GitValue::kPlain:
      return !value->starts_with('-') && value->find('!') == std::string_view::npos;
    case GitValue::kRefspec:
      return !value->starts_with('-');
    case GitValue::kPush:
      return !value->starts_with('-') && !value->starts_with('+') && !value->starts_with(':');
    case GitValue::kNames:
      return value->find(':') == std::string_view::npos && !value->starts_with('-') && value->find(" -") == std::string_view::npos;
    case GitValue::kSharing:  // an octal mode, or a word that at most lets everybody read
      return !value->starts_with('0') || value->size() < 3 ||
             std::string_view("0145").find(value->back()) != std::string_view::npos;
    case GitValue::kUpdate:
      return one_of(*value, kUpdates);
    case GitValue::kRefFormat:
      return *value == "files" || *value == "reftable";
    case GitValue::kAlias:
      return is_inert_alias(*value);
    case GitValue::kTitle:
      return is_one_line_format(*value);
    case GitValue::kComment:
      return is_comment_mark(*value);
    case GitValue::kEncoding:
      return keeps_ascii(*value);
    case GitValue::kLfs:
      return std::find(std::begin(kLfsWords), std::end(kLfsWords), *value) != std::end(kLfsWords);
    case GitValue::kInFile:
      return !value->empty() && !value->starts_with('/') && !value->starts_with('~') && !value->starts_with('%') &&
             ("/" + std::string(*value) + "/").find("/../") == std::string::npos;
    case GitValue::kWorkTree:
    case GitValue::kPromisor:
    case GitValue::kMirror:
      return false;
  }
  return false;
}

}  // namespace belljar::broker
