// Help, completion, manual pages and what is installed, of all our programs, as people meet them: real shells complete, real man(1)
// sets the pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/built.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The words that fit behind these, without what is said of them.
std::vector<std::string> fitting(std::vector<std::string> words) {
  words.insert(words.begin(), "__complete");
  const Outcome outcome = belljar(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  std::vector<std::string> found = lines_of(outcome.out);
  for (std::string& line : found) line.resize(std::min(line.find('\t'), line.size()));
  return found;
}

bool offers(const std::vector<std::string>& found, const std::string& word) {
  return std::ranges::find(found, word) != found.end();
}

std::vector<std::string> all_commands() { return fitting({""}); }

using Words = std::vector<std::string>;

TEST(Help, EveryCommandStandsUnderAHeading) {
  const Outcome help = belljar({"--help"});
  EXPECT_EQ(help.exit_code, 0) << help;
  for (const char* heading :
       {"\nRun a command:\n", "\nKeep a sandbox:\n", "\nUndo:\n", "\nLook:\n", "\nAgents:\n", "\nThis machine:\n"})
    EXPECT_TRUE(has(help.out, heading)) << heading << help;
  EXPECT_FALSE(has(help.out, "\nMore:\n")) << "a command without a group, see kGroups in cli/help.cc" << help;
  const std::vector<std::string> commands = all_commands();
  EXPECT_GE(commands.size(), 25U);
  for (const std::string& command : commands) EXPECT_TRUE(has(help.out, "\n  " + command + " ")) << command;
}

TEST(Help, OfRunIsAScreenOfWhatPeopleUseFirst) {
  const Outcome first = belljar({"run", "--help"}), all = belljar({"run", "--help", "all"});
  EXPECT_LE(lines_of(first.out).size(), 52U) << first;
  for (const char* part : {"belljar run [OPTIONS] -- PROGRAM ARG...", "--write PATH", "--allow-domain", "--txn", "--timeout TIME",
                           "$ belljar run --allow-domain github.com", "more options: belljar run --help all"})
    EXPECT_TRUE(has(first.out, part)) << part << first;
  EXPECT_FALSE(has(first.out, "--egress-bytes")) << first;
  EXPECT_TRUE(has(all.out, "--egress-bytes")) << all;
  EXPECT_EQ(belljar({"run", "--help-all"}).out, all.out);
  EXPECT_EQ(belljar({"help", "run"}).out, first.out);
  for (const std::string& line : lines_of(all.out)) EXPECT_LE(line.size(), 80U) << line;
}

// Of the options that `policy show` has, too: it loads the policy as `run` does, and starts nothing.
TEST(Help, ItsExamplesAreRight) {
  const TempDir place;
  std::filesystem::create_directories(place.path() + "/lib");
  std::filesystem::create_directories(place.path() + "/w");
  int seen = 0;
  for (const std::string& line : lines_of(belljar({"run", "--help"}).out)) {
    constexpr std::string_view kBefore = "  $ belljar run ";
    if (!line.starts_with(kBefore)) continue;
    const std::string options = line.substr(kBefore.size(), std::min(line.find(" -- "), line.find(" -c ")) - kBefore.size());
    if (options == "--txn" || options == "--json") continue;
    ++seen;
    const Outcome outcome = run({"/bin/sh", "-c", std::string(kBelljar) + " policy show " + options}, {.cwd = place.path() + "/w"});
    EXPECT_EQ(outcome.exit_code, 0) << line << outcome;
  }
  EXPECT_GE(seen, 4);
}

TEST(Help, OfACommandOfAnotherProgramIsThatProgramsOwn) {
  EXPECT_TRUE(has(belljar({"exec", "--help"}).out, "belljar exec ID [OPTIONS] -- PROGRAM ARG...")) << belljar({"exec", "--help"});
  EXPECT_TRUE(has(belljar({"help", "audit", "show"}).out, "--last N"));
  const Outcome container = belljar({"run", "--backend", "container", "--help"});
  EXPECT_TRUE(has(container.out, "--image NAME")) << container;
  EXPECT_FALSE(has(container.out, "--txn")) << "it is refused there" << container;
}

TEST(Help, AloneWithoutATerminalIsRefusedWithTheHelp) {
  const Outcome outcome = belljar({});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, belljar({"--help"}).out);
  const Outcome half = belljar({"policy"}), snapshot = belljar({"snapshot"});
  EXPECT_EQ(half.exit_code, 125);
  EXPECT_TRUE(has(half.err, "commands are show, list, explain, check,")) << half;
  EXPECT_TRUE(has(snapshot.err, "it is `belljar snapshot NAME [OPTIONS]`")) << snapshot;
}

TEST(Completion, OffersWhatIsParsed) {
  EXPECT_EQ(fitting({"run", "--net", ""}), (Words{"none", "proxy", "host"}));
  EXPECT_EQ(fitting({"run", "--net=p"}), Words{"--net=proxy"});
  EXPECT_EQ(fitting({"run", "--net="}), (Words{"--net=none", "--net=proxy", "--net=host"}));
  EXPECT_EQ(fitting({"run", "--allow-dom"}), Words{"--allow-domain"});
  EXPECT_EQ(fitting({"run", "--workspace", ""}), Words{":directories"});
  EXPECT_EQ(fitting({"run", "--net", "host", "--", "ls", ""}), Words{":program"});
  EXPECT_EQ(fitting({"run", "-c", "--", "--verb"}), Words{"--verbose"}) << "the first -- is the value of -c";
  EXPECT_EQ(fitting({"pol"}), Words{"policy"});
  EXPECT_TRUE(offers(fitting({"policy", ""}), "import"));
  EXPECT_TRUE(offers(fitting({"run", "--policy", ""}), "agent-claude"));
  EXPECT_EQ(fitting({"completion", ""}), (Words{"bash", "zsh", "fish"}));
  EXPECT_EQ(fitting({"help", "lear"}), Words{"learn"});
  EXPECT_EQ(fitting({"nonsense", ""}), Words{});
}

TEST(Completion, OfOtherProgramsComesFromThem) {
  EXPECT_EQ(fitting({"exec", "x", "--cw"}), Words{"--cwd"});
  EXPECT_EQ(fitting({"exec", "x", "--", ""}), Words{":program"});
  EXPECT_EQ(fitting({"policy", "import", "--part", ""}), (Words{"policy", "permission"}));
  EXPECT_EQ(fitting({"mcp", "--http-no"}), Words{"--http-no-token"});
  EXPECT_EQ(fitting({"agent", "--token-b"}), Words{"--token-budget"});
  EXPECT_EQ(fitting({"audit", "show", "--la"}), Words{"--last"});
  EXPECT_EQ(fitting({"run", "--backend", "container", "--imag"}), Words{"--image"});
  EXPECT_EQ(fitting({"bench", "--only", "tr"}), Words{"trees"});
  EXPECT_EQ(fitting({"exe"}), Words{"exec"});
}

// What the shell offers for the words, the last of them unfinished.
Outcome in_bash(const std::string& words) {
  const std::string program = kBelljar;
  return run({"bash", "-c",
              "source <('" + program + "' completion bash); COMP_WORDS=('" + program + "' " + words +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _belljar; printf '%s\\n' \"${COMPREPLY[@]}\""});
}

TEST(Completion, InBash) {
  BELLJAR_NEEDS(program("bash"));
  EXPECT_EQ(in_bash("run --net ''").out, "none\nproxy\nhost\n") << in_bash("run --net ''");
  EXPECT_EQ(in_bash("run --net = p").out, "proxy\n") << "bash takes words apart at =";
  EXPECT_EQ(in_bash("run --net = ''").out, "none\nproxy\nhost\n");
  EXPECT_EQ(in_bash("exec x --cw").out, "--cwd\n");
  EXPECT_EQ(in_bash("run -- /bin/truncat").out, "/bin/truncate\n");
  EXPECT_EQ(in_bash("run --workspace /proc/self/fdinf").out, "/proc/self/fdinfo\n");
}

TEST(Completion, InZsh) {
  BELLJAR_NEEDS(program("zsh"));
  const auto in_zsh = [](const std::string& words) {
    const std::string program = kBelljar;
    return run({"zsh", "-fc",
                "autoload -U compinit; compinit -D -u; source <('" + program + "' completion zsh); words=('" + program + "' " +
                    words +
                    "); CURRENT=${#words}; compadd() { shift 4; print -l -- $@ }; [[ $_comps[belljar] == _belljar ]] && _belljar"});
  };
  EXPECT_EQ(in_zsh("run --net ''").out, "none\nproxy\nhost\n") << in_zsh("run --net ''");
  EXPECT_EQ(in_zsh("run --net=p").out, "--net=proxy\n") << in_zsh("run --net=p");
  EXPECT_EQ(in_zsh("exec x --cw").out, "--cwd\n");
}

TEST(Completion, InFish) {
  BELLJAR_NEEDS(program("fish"));
  const auto in_fish = [](const std::string& line) {
    const std::string program = kBelljar;
    const TempDir home;
    return run({"fish", "-c", "source ('" + program + "' completion fish | psub); complete -C 'belljar " + line + "'"},
               {.env = {{"HOME", home.path()}, {"PATH", program.substr(0, program.rfind('/')) + ":/usr/bin:/bin"}}});
  };
  EXPECT_EQ(in_fish("run --net ").out, "host\nnone\nproxy\n") << in_fish("run --net ");
  EXPECT_TRUE(has(in_fish("exec x --cw").out, "--cwd\t")) << in_fish("exec x --cw");
  EXPECT_TRUE(has(in_fish("run -- /bin/tru").out, "/bin/true")) << in_fish("run -- /bin/tru");
}

TEST(Manual, EveryCommandHasAPageThatManSetsWithoutWarnings) {
  BELLJAR_NEEDS(program("man"));
  const TempDir place;
  std::vector<std::string> commands = all_commands();
  commands.emplace_back("");
  for (const std::string& command : commands) {
    const Outcome page = command.empty() ? belljar({"man"}) : belljar({"man", command});
    ASSERT_EQ(page.exit_code, 0) << page;
    const std::string file = place.path() + "/page.1";
    std::ofstream(file) << page.out;
    const Outcome set = run({"man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", file}, {.env = {{"LC_ALL", "C.UTF-8"}}});
    EXPECT_EQ(set.exit_code, 0) << command << set;
    EXPECT_EQ(set.err, "") << command;
    EXPECT_TRUE(has(page.out, ".SH NAME\nbelljar")) << page.out;
  }
}

TEST(Manual, TellsAllOptionsAlsoOfOtherProgramsAndSubcommands) {
  EXPECT_TRUE(has(belljar({"man", "run"}).out, "\\fB\\-\\-egress\\-bytes\\fR \\fISIZE\\fR"));
  EXPECT_TRUE(has(belljar({"man", "exec"}).out, "\\fB\\-\\-allow\\-domain\\fR"));
  EXPECT_TRUE(has(belljar({"man", "policy"}).out, ".SS belljar policy explain"));
  EXPECT_TRUE(has(belljar({"man", "policy"}).out, "\\fB\\-\\-host\\fR"));
  EXPECT_TRUE(has(belljar({"man", "policy", "import"}).out, "\\fB\\-\\-without\\fR"));
  const Outcome wrong = belljar({"man", "ruun"});
  EXPECT_EQ(wrong.exit_code, 125);
  EXPECT_TRUE(has(wrong.err, "did you mean `run`?")) << wrong;
}

// As `./dev install` and `./dev deb` do. The script of src/ alone, see BuildsAgainstAnInstalledBelljar.
TEST(Install, PutsProgramsManualPagesAndCompletionInTheirPlaces) {
  BELLJAR_NEEDS(program("cmake"));
  const TempDir place;
  const std::string prefix = place / "prefix", bin = std::string(kBelljar).substr(0, std::string(kBelljar).rfind('/'));
  const Outcome installed = run({"cmake", "-DCMAKE_INSTALL_PREFIX=" + prefix, "-DCMAKE_INSTALL_COMPONENT=program", "-P",
                                 bin + "/../src/cmake_install.cmake"});
  ASSERT_EQ(installed.exit_code, 0) << installed;
  const std::string belljar = prefix + "/bin/belljar";
  EXPECT_EQ(std::filesystem::read_symlink(belljar), "../lib/belljar/belljar");
  EXPECT_TRUE(has(run({belljar, "exec", "--help"}).out, "belljar exec ID")) << "a program beside the link's target";
  EXPECT_TRUE(has(run({"gzip", "-dc", prefix + "/share/man/man1/belljar-exec.1.gz"}).out, ".TH BELLJAR\\-EXEC 1"));
  EXPECT_EQ(run({"cat", prefix + "/share/bash-completion/completions/belljar"}).out, run({belljar, "completion", "bash"}).out);
  for (const char* file :
       {"/share/zsh/site-functions/_belljar", "/share/fish/vendor_completions.d/belljar.fish", "/share/man/man1/belljar.1.gz"})
    EXPECT_TRUE(std::filesystem::exists(prefix + file)) << file;
}

}  // namespace
}  // namespace belljar::test
