// The agents reach their providers by name, through the proxy and TLS, with a key that they do not hold. And the commands of
// docs/agents are run as they stand there.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "support/world.h"
#include "support_agents.h"

namespace belljar::test {
namespace {

// An authority of the test's own, and one certificate for all of the models' hosts.
constexpr char kMakeCertificate[] = R"(set -e
cd "$1"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 30 -subj '/CN=Test authority' \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out request -subj /CN=model
printf 'subjectAltName=%s\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n' "$2" >extensions
openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 20 -extfile extensions -out cert.pem
)";

class AgentByName : public AgentsOfNpm {
 protected:
  void SetUp() override {
    AgentsOfNpm::SetUp();
    if (IsSkipped()) return;
    BELLJAR_NEEDS(program("openssl"));
    if (const std::string missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
    std::string names, hosts;
    for (const Npm& each : kAgents) {
      if (has(names, each.host)) continue;
      names += (names.empty() ? "DNS:" : ",DNS:") + each.host;
      hosts += each.host + "\n";
    }
    world_.files.write("model", hosts);
    const Outcome made = run({"sh", "-c", kMakeCertificate, "sh", world_.files.path(), names});
    ASSERT_EQ(made.exit_code, 0) << made;
    authority_ = home_.write("ca.pem", read_file(world_.files / "ca.pem"));
    home_.write(".codex/config.toml", "[projects.\"" + world_.workspace.path() + "\"]\ntrust_level = \"trusted\"\n");
    home_.write(".config/opencode/opencode.json", R"({"permission":"allow"})");
  }
  // As a user's shell has it who has an authority of their own; the loopback of the other tests is not spoken of.
  Words with_variables() const {
    Words words{"env", "-u", "ANTHROPIC_BASE_URL"};
    for (const auto& [name, value] : variables()) {
      if (!name.ends_with("_BASE_URL")) words.push_back(name + "=" + value);
    }
    words.push_back("XDG_STATE_HOME=" + world_.state());
    words.push_back("NODE_EXTRA_CA_CERTS=" + authority_);
    words.push_back("CODEX_CA_CERTIFICATE=" + authority_);
    return words;
  }
  Outcome in_world(const Words& command) const {
    hand_over();
    if (is_root()) world_.workspace.give_to(user_uid(), user_gid());
    Words words = with_variables();
    words.insert(words.end(), command.begin(), command.end());
    return world_.run(words);
  }
  Words ask_by_name(const std::string& prompt) const {
    Words words = ask(prompt);
    std::ranges::replace(words, std::string("m/x"), std::string("anthropic/claude-sonnet-4-5"));
    return words;
  }
  std::string asked() const { return read_file(world_.files / "log"); }

  World world_;
  std::string authority_;
};
INSTANTIATE_TEST_SUITE_P(Npm, AgentByName, testing::ValuesIn(kAgents), [](const auto& each) { return each.param.name; });

TEST_P(AgentByName, ItsProviderIsReachedByTlsThroughTheProxy) {
  Words words{kBelljar, "run", "--"};
  const Words asks = ask_by_name("[[sh echo made > made.txt; cat made.txt]]");
  words.insert(words.end(), asks.begin(), asks.end());
  const Outcome outcome = in_world(words);
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  EXPECT_TRUE(exists(world_.workspace / "made.txt")) << outcome;
  EXPECT_TRUE(has(asked(), "k-of-the-test")) << asked();
}

TEST_P(AgentByName, TheKeyStaysOutside) {
  Words words{kBelljar, "run", "--tls-ca-file", authority_, "--credential", agent().key + " for " + agent().host, "--"};
  const Words asks = ask_by_name("[[sh env > seen.txt; cat seen.txt]]");
  words.insert(words.end(), asks.begin(), asks.end());
  const Outcome outcome = in_world(words);
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  const std::string seen = exists(world_.workspace / "seen.txt") ? read_file(world_.workspace / "seen.txt") : "";
  EXPECT_FALSE(seen.empty() || has(seen, "k-of-the-test")) << seen << outcome;
  EXPECT_TRUE(has(asked(), "k-of-the-test")) << "what the provider sees: " << asked();
}

// Every command of docs/agents, as it stands there.
class AgentsPages : public AgentByName {
 protected:
  static std::vector<std::string> commands_of(const std::string& page) {
    std::vector<std::string> commands;
    std::istringstream lines(read_file(std::string(kSourceDir) + "/docs/agents/" + page));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("    ")) continue;
      const std::size_t comment = line.find("  #");
      commands.push_back(line.substr(4, comment == std::string::npos ? comment : comment - 4));
      commands.back().erase(commands.back().find_last_not_of(' ') + 1);
    }
    return commands;
  }
  // How the test does what the page's reader does: at a terminal where the command asks or draws.
  std::string as_a_reader(const std::string& command) const {
    const std::string terminal = "python3 " + std::string(kSourceDir) + "/tests/agents/on_terminal.py ";
    if (command == "cd ~/project") return "mkdir -p ~/project && cd ~/project";
    if (command.find(" keep ") != std::string::npos) return terminal + "'[y/N]' 'y\\n' '" + command + "'";
    if (command.ends_with("-- " + agent().name)) return terminal + "'\\x1b[' '' '" + command + "'";
    return command;
  }
};
INSTANTIATE_TEST_SUITE_P(Npm, AgentsPages, testing::ValuesIn(kAgents), [](const auto& each) { return each.param.name; });

TEST_P(AgentsPages, EveryCommandDoesWhatThePageSays) {
  const std::string setting = R"({"model":"m"})";
  home_.write("project/change", "printf %s '" + setting + "' >~/.claude/settings.json\n");
  const std::string bin = std::string(kBelljar).substr(0, std::string(kBelljar).rfind('/'));
  std::string script = "exec </dev/null; git init -q .; PATH=" + bin + ":$PATH\n";
  script += "python3 -B " + std::string(kSourceDir) + "/tests/agents/model.py --port 8080 >served & model=$!\n";
  script += "while [ ! -s served ]; do read -r _ 2>/dev/null <served; done\n";
  int count = 0;
  for (const std::string& page : {agent().name + ".md", std::string("README.md")}) {
    for (const std::string& command : commands_of(page)) {
      if (page == "README.md" && !is(kClaude)) continue;
      // What there is to see and to keep.
      if (command == "belljar agents diff claude")
        script += "belljar run --host-port 8080 -- claude -p '[[sh sh change]]' --allowedTools Bash\n";
      const bool local = command.find("8080") != std::string::npos || command.find("agents") != std::string::npos;
      script += std::string(local ? "export" : "unset") + " ANTHROPIC_BASE_URL" + (local ? "=http://127.0.0.1:8080" : "") + "\n";
      script += as_a_reader(command) + "; echo \"[[$? of " + std::to_string(++count) + "]]\"\n";
    }
  }
  script += "kill $model\n";
  ASSERT_GT(count, 0);
  const Outcome outcome = in_world({"sh", "-c", script});
  for (int each = 1; each <= count; ++each)
    EXPECT_TRUE(says(outcome, "[[0 of " + std::to_string(each) + "]]")) << each << outcome << script;
  if (is(kClaude)) {
    EXPECT_EQ(read_file(home_ / ".claude/settings.json"), setting);
  }
}

}  // namespace
}  // namespace belljar::test
