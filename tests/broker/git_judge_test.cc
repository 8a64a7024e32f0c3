// What stands in git's control files and may stay there, and what may not. Each refusal beside the nearest thing that is allowed.
#include "broker/git_judge.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "broker/git_names.h"

namespace belljar::broker {
namespace {

using namespace std::string_literals;

const std::vector<std::string> kRoots = {"/w"};

std::optional<std::string> object(GitName kind, std::string_view path, std::string_view content,
                                  std::optional<std::string_view> old = {}) {
  return git_objection(kind, path, content, {.old_content = old, .roots = kRoots, .reaches = {}, .is_link = {}});
}
std::optional<std::string> config(std::string_view content, std::optional<std::string_view> old = {}) {
  return object(GitName::kConfig, "/w/.git/config", content, old);
}

TEST(GitJudge, WhatGitWritesItself) {
  EXPECT_FALSE(config("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"));
  EXPECT_FALSE(
      config("[remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
             "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n\temail = a@b.c\n"));
  EXPECT_FALSE(config("[submodule \"lib\"]\n\turl = /w/lib\n\tactive = true\n[extensions]\n\tworktreeConfig = true\n"));
  EXPECT_FALSE(config(""));
}

struct Pair {
  const char* bad;
  const char* good;
};

TEST(GitJudge, SettingsThatRunSomethingBesideTheirNeighbours) {
  const Pair pairs[] = {
      {"[core]\nfsmonitor = ./x", "[core]\nfsmonitor = false"},
      {"[core]\nfsmonitor", "[core]\nfilemode"},
      {"[core]\nhooksPath = .", "[core]\nquotePath = false"},
      {"[core]\nsshCommand = x", "[core]\nsymlinks = x"},
      {"[core]\npager = x", "[core]\neol = lf"},
      {"[core]\neditor = x", "[core]\nabbrev = 8"},
      {"[core]\naskPass = x", "[core]\nbare = false"},
      {"[core]\ngitProxy = x", "[core]\nautocrlf = input"},
      {"[core]\nattributesFile = x", "[core]\nwhitespace = -trailing-space"},
      {"[blame]\nignoreRevsFile = /etc/shadow", "[blame]\nignoreRevsFile = .git-blame-ignore-revs"},
      {"[blame]\nignoreRevsFile = a/../../x", "[blame]\nshowRoot = true"},
      {"[pager]\nlog = x", "[color]\npager = false"},
      {"[pull]\ntwohead = x", "[pull]\nff = only"},
      {"[pull]\noctopus = x", "[apply]\nwhitespace = fix"},
      {"[log]\nshowSignature = true", "[log]\nnewerKey = true"},
      {"[fetch]\nbundleURI = https://a/b", "[fetch]\nnewerKey = x"},
      {"[receive \"fsck\"]\nskipList = x", "[receive]\ncertNonceSlop = 1"},
      {"[transfer]\nfsckObjects = false", "[transfer]\nhideRefs = refs/x"},
      {"[interactive]\ndiffFilter = x", "[interactive]\nsingleKey = true"},
      {"[format]\noutputDirectory = /x", "[format]\npretty = oneline"},
      {"[commit]\ntemplate = /x", "[lsrefs]\nunborn = ignore"},
      {"[diff]\norderFile = ~/x", "[diff]\norderFile = order"},
      {"[core]\nexcludesFile = /x", "[core]\nexcludesFile = .ignore"},
      {"[imap]\ntunnel = x", "[diff \"x\"]\nxfuncname = ^x"},
      {"[guitool \"x\"]\ncmd = x", "[diff \"x\"]\ncachetextconv = true"},
      {"[core]\nprotectHFS = false", "[core]\nprotectHFS = true"},
      {"[core]\nalternateRefsCommand = x", "[core]\nignoreCase = true"},
      {"[alias]\nst = !sh", "[alias]\nst = status -sb"},
      {"[alias]\nl = -c core.pager=x log", "[alias]\nl = log --oneline --graph"},
      {"[alias]\nl = log --output=x", "[alias]\nl = log"},
      {"[filter \"x\"]\nclean = sh", "[filter \"lfs\"]\nclean = git-lfs clean -- %f"},
      {"[filter \"lfs\"]\nclean = sh", "[filter \"lfs\"]\nrequired = true"},
      {"[diff \"x\"]\ntextconv = sh", "[diff \"x\"]\nbinary = true"},
      {"[diff \"x\"]\ncommand = sh", "[diff]\nalgorithm = histogram"},
      {"[diff]\nexternal = sh", "[diff]\nrenames = true"},
      {"[merge \"x\"]\ndriver = sh", "[merge]\nconflictStyle = zdiff3"},
      {"[include]\npath = x", "[init]\ndefaultBranch = main"},
      {"[includeIf \"gitdir:/\"]\npath = x", "[index]\nversion = 4"},
      {"[url \"x\"]\ninsteadOf = https://", "[remote \"x\"]\nurl = https://a/b"},
      {"[url \"x\"]\npushInsteadOf = https://", "[remote \"x\"]\npushurl = git@host:a/b"},
      {"[credential]\nhelper = x", "[push]\ndefault = simple"},
      {"[gpg]\nprogram = x", "[commit]\ngpgSign = false"},
      {"[gpg \"ssh\"]\nprogram = x", "[tag]\ngpgSign = false"},
      {"[sequence]\neditor = x", "[rebase]\nautoStash = true"},
      {"[browser \"x\"]\ncmd = x", "[color]\nui = auto"},
      {"[web]\nbrowser = x", "[column]\nui = auto"},
      {"[remote \"x\"]\nuploadpack = x", "[remote \"x\"]\ntagOpt = --no-tags"},
      {"[remote \"x\"]\nreceivepack = x", "[remote \"x\"]\nprune = true"},
      {"[remote \"x\"]\nvcs = x", "[remote \"x\"]\nmirror = false"},
      {"[remote \"x\"]\nmirror = true", "[core]\nbare = true\n[remote \"x\"]\nmirror = true"},
      {"[remote \"x\"]\npush = +refs/heads/a:refs/heads/b", "[remote \"x\"]\npush = HEAD:refs/for/main"},
      {"[remote \"x\"]\npush = :refs/heads/b", "[remote \"x\"]\nfetch = +refs/heads/*:refs/remotes/x/*"},
      {"[remotes]\nall = a ext::x", "[remotes]\nall = a b"},
      {"[help]\nbrowser = x", "[help]\nautocorrect = 10\nformat = man"},
      {"[core]\nsharedRepository = 0666", "[core]\nsharedRepository = 0660"},
      {"[core]\nsharedRepository = 0642", "[core]\nsharedRepository = group"},
      {"[remote \"x\"]\nproxy = x", "[remote \"x\"]\nprune = true"},
      {"[remote \"x\"]\nurl = https://a/b\npromisor", "[remote \"x\"]\nurl = https://a/b\npromisor = false"},
      {"[remote \"x\"]\nurl = https://a/b\npromisor = true", "[remote \"x\"]\nurl = ../b\npromisor = true"},
      {"[remote \"x\"]\nurl = ssh://a/b\n[extensions]\npartialClone = x",
       "[remote \"x\"]\nurl = /w/b\n[extensions]\npartialClone = x"},
      {"[remote \"x\"]\nurl = ext::sh -c x", "[remote \"x\"]\nurl = ext/sh"},
      {"[remote \"x\"]\nurl = --upload-pack=x", "[remote \"x\"]\nurl = ./--upload-pack=x"},
      {"[remote \"x\"]\nurl = ssh://-oProxyCommand=x/y", "[remote \"x\"]\nurl = ssh://git@host/y"},
      {"[remote \"x\"]\nurl = git@-oProxyCommand=x:y", "[remote \"x\"]\nurl = git@host:y"},
      {"[remote \"x\"]\nurl = evil://x", "[remote \"x\"]\nurl = file:///w/x"},
      {"[remote \"x\"]\nurl = \"https://a\\nb\"", "[remote \"x\"]\nurl = \"https://a b\""},
      {"[remote]\npushDefault = ext::x", "[remote]\npushDefault = origin"},
      {"[branch \"x\"]\nremote = ext::x", "[branch \"x\"]\nremote = ."},
      {"[branch \"x\"]\nmergeOptions = -s x", "[branch \"x\"]\ndescription = -s x"},
      {"[uploadpack]\npackObjectsHook = x", "[uploadpack]\nallowFilter = true"},
      {"[protocol \"ext\"]\nallow = always", "[protocol]\nversion = 2"},
      {"[trailer \"x\"]\ncommand = x", "[log]\ndate = iso"},
      {"[gc]\nrecentObjectsHook = x", "[gc]\nauto = 0"},
      {"[submodule \"x\"]\nupdate = !sh", "[submodule \"x\"]\nupdate = checkout"},
      {"[submodule \"x\"]\nurl = ext::x", "[submodule \"x\"]\nurl = ../x"},
      {"[submodule \"x\"]\npath = -x", "[submodule \"x\"]\npath = x"},
      {"[http]\nproxy = x", "[http]\npostBuffer = 1"},
      {"[http]\nsslVerify = false", "[http]\nversion = HTTP/2"},
      {"[rebase]\ninstructionFormat = %s%nexec x", "[rebase]\ninstructionFormat = %s [%an, %h]"},
      {"[rebase]\ninstructionFormat = %s%x0aexec x", "[rebase]\ninstructionFormat = format:%h %s"},
      {"[rebase]\ninstructionFormat = %B", "[rebase]\nbackend = merge"},
      {"[rebase]\ninstructionFormat = name", "[pretty]\nname = format:%s%nexec x"},  // shown, and no more
      {"[core]\ncommentString = \" exec x #\"", "[core]\ncommentString = //"},
      {"[core]\ncommentChar = e", "[core]\ncommentChar = \";\""},
      {"[i18n]\nlogOutputEncoding = UTF-16BE", "[i18n]\nlogOutputEncoding = ISO-8859-1"},
      {"[fetch]\nfsckObjects = false", "[fetch]\nfsckObjects = true"},
      {"[receive]\nfsckObjects = no", "[receive]\nfsckObjects"},
      {"[fetch \"fsck\"]\nmissingEmail = ignore", "[fetch]\nprune = true"},
      {"[safe]\ndirectory = *", "[stash]\nshowStat = true"},
      {"[mergetool \"x\"]\ncmd = x", "[merge]\nff = only"},
      {"[difftool \"x\"]\ncmd = x", "[grep]\nlineNumber = true"},
      {"[instaweb]\nhttpd = x", "[i18n]\ncommitEncoding = utf-8"},
      {"[man \"x\"]\ncmd = x", "[maintenance]\nauto = false"},
      {"[sendemail]\nsmtpServer = x", "[status]\nshort = true"},
      {"[extensions]\nrefStorage = x://y", "[extensions]\nrefStorage = reftable"},
      {"[brandnew]\nkey = x", "[user]\nname = x"},
      {"[user]\nname = \"a\\nb\"", "[user]\nname = a b"},
      {"key = x", "[user]\nemail = x"},
  };
  for (const Pair& pair : pairs) {
    EXPECT_TRUE(config(pair.bad)) << pair.bad;
    const auto objection = config(pair.good);
    EXPECT_FALSE(objection) << pair.good << ": " << *objection;
  }
}

// Git on the host asks a promisor unbidden: only a server that the command could ask itself, however the settings came to be.
TEST(GitJudge, APromisorIsOneThatTheCommandMayReach) {
  const auto judged = [](std::string_view text, std::optional<std::string_view> old = {},
                         std::string_view path = "/w/.git/config") {
    GitContext context{.old_content = old, .roots = kRoots, .reaches = {}, .is_link = {}};
    context.reaches = [](std::string_view url) { return url == "https://here/x"; };
    return git_objection(GitName::kConfig, path, text, context);
  };
  const std::string here = "[remote \"o\"]\nurl = https://here/x\npromisor = true\n[extensions]\npartialClone = o\n";
  const std::string there = "[remote \"o\"]\nurl = https://there/x\npromisor = true\n";
  EXPECT_FALSE(judged(here));
  EXPECT_TRUE(judged(there));
  EXPECT_FALSE(judged(there + "[user]\nname = x\n", there)) << "it stood there";
  EXPECT_TRUE(judged("[remote \"o\"]\nurl = https://elsewhere/x\npromisor = true\n", there)) << "its URL did not";
  EXPECT_TRUE(judged(here + "[remote \"o\"]\nurl = https://there/x\n", here));
  EXPECT_TRUE(judged("[remote \"o\"]\npromisor = true\n", {}, "/w/.git/config.worktree")) << "its URL is in another file";
}

TEST(GitJudge, OddWritingHidesNothing) {
  for (const std::string_view text : {"[CORE]\nPAGER=x", "[core] pager = x", "\xEF\xBB\xBF[core]pager=x", "[core]\r\npager = x\r\n",
                                      "[user]\nname = a # \\\n[core]\npager = x", "[user]\nname = \"a\\\n\"\n[core]\npager=x",
                                      "[core]\npag\\\ner = x", "[core]\npager", "; [user]\n[core]pager=x"}) {
    EXPECT_TRUE(config(text)) << text;
  }
  EXPECT_FALSE(config("# [core]\n# pager = x\n"));
  EXPECT_FALSE(config("[user]\nname = \"[core] pager = x\"\n"));
  EXPECT_TRUE(config("[user]\nname = a\0\n"s));
  EXPECT_TRUE(config(std::string(kMaxControlFile + 1, '#')));
  EXPECT_FALSE(config(std::string(kMaxControlFile, '#')));
}

TEST(GitJudge, WhatStoodThereMayStay) {
  constexpr std::string_view kOld = "[core]\n\tpager = less\n[user]\n\tname = a\n";
  EXPECT_FALSE(config("[core]\n\tpager = less\n[user]\n\tname = b\n", kOld));
  EXPECT_FALSE(config("[user]\nname = b\n[core]\npager = less", kOld));
  EXPECT_FALSE(config(kOld, kOld));
  EXPECT_TRUE(config("[core]\n\tpager = less -x\n", kOld));
  EXPECT_TRUE(config("[core]\n\tpager = less\n\teditor = less\n", kOld));
  EXPECT_TRUE(config("[core]\n\tpager = less\n", "[core]\n#pager = less\n"));
  EXPECT_FALSE(config("?broken", "?broken"));
  EXPECT_TRUE(config("?broken ", "?broken"));
}

TEST(GitJudge, WorkTreeOfItsOwnRepositoryOnly) {
  const auto work_tree = [](std::string_view path, std::string value) {
    return object(GitName::kConfig, path, "[core]\nworktree = " + std::move(value));
  };
  EXPECT_FALSE(work_tree("/w/.git/modules/x/config", "../../../x"));
  EXPECT_FALSE(work_tree("/w/a/.git/modules/x/config", "../../../deep/x"));
  EXPECT_TRUE(work_tree("/w/a/.git/modules/x/config", "../../../../x"));
  EXPECT_TRUE(work_tree("/w/.git/modules/x/config", "../../.."));
  EXPECT_TRUE(work_tree("/w/.git/modules/x/config", "../../../.vscode"));
  EXPECT_TRUE(work_tree("/w/.git/modules/x/config", "../../../.github"));
  EXPECT_FALSE(work_tree("/w/.git/modules/x/config", "../../../.github/actions"));
  EXPECT_TRUE(work_tree("/w/.git/modules/x/config", "../../hooks"));
  EXPECT_TRUE(work_tree("/w/.git/modules/x/config", "/home/user"));
  EXPECT_FALSE(work_tree("/w/.git/config", ".."));
  EXPECT_TRUE(work_tree("/w/.git/config", "/"));
  // Any name on the way may be a link by the time git follows it; `..` never is.
  EXPECT_TRUE(work_tree("/w/.git/config", "/w"));
  EXPECT_TRUE(work_tree("/w/.git/config", "../x"));
  EXPECT_TRUE(work_tree("/w/.git/config", "../x/.."));
  EXPECT_TRUE(work_tree("/w/.git/modules/x/config", "/w/x"));
  EXPECT_FALSE(work_tree("/w/r.git/config", ".."));
  EXPECT_TRUE(work_tree("/w/r.git/config", "../x"));
  EXPECT_TRUE(work_tree("/w/r.git/config", "../../x"));
}

TEST(GitJudge, KeysOfUnboundedLengthAreRefused) {
  std::string text = "[submodule \"" + std::string(300'000, 'x') + "\"]\n";
  for (int i = 0; i < 1000; ++i) text += "active\n";
  EXPECT_TRUE(config(text));
  EXPECT_TRUE(object(GitName::kModulesFile, "/w/.gitmodules", text));
}

TEST(GitJudge, Pointers) {
  const auto pointer = [](std::string_view path, std::string_view text) { return object(GitName::kPointer, path, text); };
  EXPECT_FALSE(pointer("/w/sub/.git", "gitdir: ../.git/modules/sub\n"));
  EXPECT_FALSE(pointer("/w/sub/.git", "gitdir: /w/.git/worktrees/sub\r\n"));
  EXPECT_FALSE(pointer("/w/sub/.git", ""));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: ../../evil\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: /tmp/evil\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: /wevil\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: x\ny\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: /w/x\0/../../evil"s));
  EXPECT_FALSE(pointer("/w/sub/.git", "gitdir: ../x" + std::string(9000, '\n')));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: ../../x" + std::string(9000, '\n')));
  EXPECT_TRUE(pointer("/w/sub/.git", "ref: x"));
  EXPECT_FALSE(pointer("/w/.git/worktrees/x/commondir", "../..\n"));
  EXPECT_FALSE(pointer("/w/.git/worktrees/x/commondir", "/w/.git"));
  EXPECT_TRUE(pointer("/w/.git/worktrees/x/commondir", "../../../evil"));
  EXPECT_TRUE(pointer("/w/.git/commondir", "../evil\n"));
  EXPECT_TRUE(pointer("/w/.git/commondir", ".\n"));
  EXPECT_FALSE(pointer("/w/.git/worktrees/x/gitdir", "/w/x/.git\n"));
  EXPECT_FALSE(pointer("/w/.git/worktrees/x/gitdir", "../../../x/.git\n"));
  EXPECT_TRUE(pointer("/w/.git/worktrees/x/gitdir", "/home/user/x/.git\n"));
  EXPECT_TRUE(pointer("/w/.git/worktrees/x/gitdir", "/w/x/.bashrc\n"));
}

std::optional<std::string> records(std::string_view content) { return object(GitName::kMergeRecords, "/w/.git/MERGE_RR", content); }
const std::string kId(40, 'a');

TEST(GitJudge, RecordsOfRerere) {
  const auto path = [](std::string_view text) { return records(kId + "\t" + std::string(text) + "\0"s); };
  EXPECT_FALSE(records(""));
  for (const std::string_view good : {"a", "a/b c", "..a", "a/...", ".github/workflows/x.yml", "x\ty"}) {
    const auto why = path(good);
    EXPECT_FALSE(why) << good << ": " << *why;
  }
  for (const std::string_view bad :
       {"", "/etc/x", "../x", "a/../../x", "./a", ".git/config", "a/.GIT/config", "git~1/config", ".gi\u200Ct/x", ".vscode/x",
        "a/.VSCode/x", ".github/copilot-instructions.md", ".HG/hgrc", ".gitmodules", "a/..", ".git", "a//../x"})
    EXPECT_TRUE(path(bad)) << bad;
}

TEST(GitJudge, RecordsOfRerereNameOnlySmallVariants) {
  const auto id = [](std::string_view text) { return records(std::string(text) + "\ta\0"s); };
  for (const std::string& good : {kId, kId + ".1", kId + ".9999", std::string(64, '0')}) {
    const auto why = id(good);
    EXPECT_FALSE(why) << good << ": " << *why;
  }
  // 4294967295 is -1 to git.
  for (const std::string& bad : {kId + ".-1", kId + ".4294967295", kId + ".", kId + ". 1", kId + ".+1", kId + ".0x1", kId + ".1.1",
                                 kId + "a", kId.substr(1), std::string(40, 'G'), std::string(40, 'A'), ""s})
    EXPECT_TRUE(id(bad)) << bad;
  EXPECT_TRUE(records(kId + "\ta"));
  EXPECT_TRUE(records(kId + "\0"s));
  EXPECT_TRUE(records(kId + "\ta\0"s + kId + ".-1\tb\0"s));
  EXPECT_FALSE(records(kId + "\ta\0"s + kId + ".1\tb\0"s));
}

// Rerere takes lines for a conflict and writes another content, through any link of the work tree.
TEST(GitJudge, NothingLooksLikeAConflict) {
  EXPECT_TRUE(config("[user]\nname = \"a \\\n<<<<<<< b \\\nc\"\n"));
  EXPECT_TRUE(config("[user]\nname = a \\\n< b\n"));
  EXPECT_FALSE(config("[user]\nname = a <b@c>\n"));
  EXPECT_FALSE(config("[user]\nname = a \\\n <b\n"));
  EXPECT_TRUE(object(GitName::kAttributes, "/w/.git/info/attributes", "<<<<<<< a\n"));
  EXPECT_FALSE(object(GitName::kAttributes, "/w/.git/info/attributes", "a< b\n"));
  EXPECT_FALSE(object(GitName::kModulesFile, "/w/.gitmodules", "<<<<<<< a\n=======\n>>>>>>> b\n"));
}

TEST(GitJudge, PathsOfABisectAreQuoted) {
  const auto names = [](std::string_view text) { return object(GitName::kOption, "/w/.git/BISECT_NAMES", text); };
  EXPECT_FALSE(names("\n"));
  EXPECT_FALSE(names(" 'a' 'b c' 'it'\\''s' 'no'\\!'' '$(x)'\n"));
  for (const std::string_view bad : {"; x\n", " 'a';x\n", " 'a' x\n", " $(x)\n", " 'a\n", " \\x", " 'a'\\''b"})
    EXPECT_TRUE(names(bad)) << bad;
}

TEST(GitJudge, WhatOtherProgramsRunIsRefused) {
  EXPECT_TRUE(object(GitName::kProgram, "/w/.git/gitweb/lighttpd", "#!/bin/sh\n"));
  EXPECT_FALSE(object(GitName::kProgram, "/w/.git/gitweb/lighttpd", ""));
  EXPECT_TRUE(object(GitName::kProgram, "/w/.git/lazygit.yml", "customCommands: []\n"));
}

TEST(GitJudge, HooksAndTheRest) {
  EXPECT_TRUE(object(GitName::kHook, "/w/.git/hooks/pre-commit", ""));
  EXPECT_FALSE(object(GitName::kSampleHook, "/w/.git/hooks/pre-commit.sample", "x"));
  EXPECT_FALSE(object(GitName::kAttributes, "/w/.git/info/attributes",
                      "*.c text eol=lf\n*.bin -diff filter=lfs diff=lfs merge=lfs -text\n"));
  EXPECT_TRUE(object(GitName::kAttributes, "/w/.git/info/attributes", "*.c filter=evil"));
  EXPECT_TRUE(object(GitName::kAttributes, "/w/.git/info/attributes", "*.c\tdiff=evil"));
  EXPECT_FALSE(object(GitName::kAlternates, "/w/a/.git/objects/info/alternates", "/w/b/.git/objects\n"));
  EXPECT_FALSE(object(GitName::kAlternates, "/w/a/.git/objects/info/alternates", "../../../b/.git/objects\n"));
  EXPECT_TRUE(object(GitName::kAlternates, "/w/a/.git/objects/info/alternates", "/w/b\n/home/user/x\n"));
  EXPECT_TRUE(object(GitName::kAlternates, "/w/a/.git/objects/info/http-alternates", "/w/b\n"));
  EXPECT_FALSE(object(GitName::kTodo, "/w/.git/rebase-merge/git-rebase-todo", "pick abc x\n\n# exec x\nf def y\n"));
  EXPECT_TRUE(object(GitName::kTodo, "/w/.git/rebase-merge/git-rebase-todo", "pick abc x\nexec sh\n"));
  EXPECT_TRUE(object(GitName::kTodo, "/w/.git/rebase-merge/git-rebase-todo", "\tx sh\n"));
  const auto modules = [](std::string_view text) { return object(GitName::kModulesFile, "/w/.gitmodules", text); };
  EXPECT_FALSE(modules("[submodule \"x\"]\npath = x\nurl = ../x\nupdate = rebase\nother = !sh\n[core]\npager = x\n"));
  EXPECT_TRUE(modules("[submodule \"x\"]\nupdate = !sh"));
  EXPECT_TRUE(modules("[submodule \"x\"]\nurl = -u./sh"));
  EXPECT_TRUE(modules("[submodule \"x\"]\nurl = ext::sh"));
  EXPECT_TRUE(modules("[submodule \"x\"]\npath = -x"));
  EXPECT_TRUE(modules("[submodule \"x\"]\npath = \"x\r\"\n"));
  EXPECT_FALSE(modules("[submodule \"x\"]\r\npath = x\r\n")) << "the twin";
  EXPECT_TRUE(modules("[submodule \"../../x\"]\npath = x"));
  EXPECT_TRUE(modules("[submodule \"x\"]\npath = x\n\0[submodule \"y\"]\nurl = ext::sh\n"s));
  EXPECT_TRUE(object(GitName::kLegacyRemote, "/w/.git/remotes/x", "URL: ext::sh"));
}

TEST(GitJudge, AnAuthorIsThreeQuotedWords) {
  const auto author = [](std::string_view text) { return object(GitName::kOption, "/w/.git/rebase-merge/author-script", text); };
  EXPECT_FALSE(author("GIT_AUTHOR_NAME='A '\\''B'\\'' C'\nGIT_AUTHOR_EMAIL='a@b.c'\nGIT_AUTHOR_DATE='@1 +0000'\n"));
  EXPECT_FALSE(author("GIT_AUTHOR_NAME='Yes'\\!''\n"));
  EXPECT_FALSE(author(""));
  EXPECT_TRUE(author("GIT_AUTHOR_NAME=$(sh)\n"));
  EXPECT_TRUE(author("GIT_AUTHOR_NAME='A'$(sh)\n"));
  EXPECT_TRUE(author("GIT_AUTHOR_NAME='A'; sh\n"));
  EXPECT_TRUE(author("GIT_AUTHOR_NAME='A\n"));
  EXPECT_TRUE(author("GIT_AUTHOR_NAME='A'\nsh\n"));
  EXPECT_TRUE(author("PATH='/w'\n"));
}

// What a pointer leads through is where it leads now; a link there ends where nobody judges.
TEST(GitJudge, APointerLeadsThroughNoLink) {
  const auto pointer = [](std::string_view path, std::string_view text) {
    GitContext context{.old_content = {}, .roots = kRoots, .reaches = {}, .is_link = {}};
    context.is_link = [](const std::string& at) { return at == "/w/link" || at == "/w/.git/link"; };
    return git_objection(file_name(path) == "alternates" ? GitName::kAlternates : GitName::kPointer, path, text, context);
  };
  EXPECT_FALSE(pointer("/w/sub/.git", "gitdir: ../real/evil\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: ../link/evil\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: /w/link\n"));
  EXPECT_TRUE(pointer("/w/sub/.git", "gitdir: ../link/../real\n")) << "the link's parent, not /w";
  EXPECT_FALSE(pointer("/w/.git/worktrees/x/commondir", "../..\n"));
  EXPECT_TRUE(pointer("/w/.git/worktrees/x/commondir", "../../link/..\n"));
  EXPECT_TRUE(pointer("/w/.git/worktrees/x/gitdir", "/w/link/.git\n"));
  EXPECT_FALSE(pointer("/w/.git/objects/info/alternates", "/w/real/objects\n"));
  EXPECT_TRUE(pointer("/w/.git/objects/info/alternates", "../../link/objects\n"));
}

}  // namespace
}  // namespace belljar::broker
