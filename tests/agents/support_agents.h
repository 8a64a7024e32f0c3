// The four agents as npm installs them (BELLJAR_AGENTS: the directory that holds their node_modules), and a model of ours that does
// what a prompt says (model.py). A home, a workspace and a state directory each test; as root they belong to an ordinary user.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

struct Npm {
  std::string name;
  std::string key;      // the variable of its key
  std::string host;     // of its model
  Words before, after;  // of a prompt, without asking the user
};
inline void PrintTo(const Npm& agent, std::ostream* out) { *out << agent.name; }

inline const Npm kClaude{"claude", "ANTHROPIC_API_KEY", "api.anthropic.com", {"-p"}, {"--allowedTools", "Bash", "mcp__calc__add"}};
inline const Npm kCodex{"codex", "CODEX_API_KEY", "api.openai.com", {"exec", "--skip-git-repo-check"}, {}};
inline const Npm kGemini{"gemini", "GEMINI_API_KEY", "generativelanguage.googleapis.com", {"-y", "--skip-trust", "-p"}, {}};
inline const Npm kOpencode{"opencode", "ANTHROPIC_API_KEY", "api.anthropic.com", {"run", "-m", "m/x"}, {}};
inline const std::vector<Npm> kAgents{kClaude, kCodex, kGemini, kOpencode};

inline std::string place_of_agents() {
  const char* const place = std::getenv("BELLJAR_AGENTS");  // NOLINT(concurrency-mt-unsafe)
  return place == nullptr ? "" : std::string(place) + "/node_modules/.bin";
}
inline std::string agents_of_npm() {
  return place_of_agents().empty() ? "needs BELLJAR_AGENTS, a directory where npm installed the agents: ./dev test --all agents"
                                   : "";
}

// The model on a port of the loopback.
class Model {
 public:
  Model() : server_({"python3", "-B", std::string(kSourceDir) + "/tests/agents/model.py", "--log", log_ / "log"}) {
    EXPECT_TRUE(server_.wait_for_output("\n"));
    port_ = server_.out().substr(0, server_.out().find('\n'));
  }
  const std::string& port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + port_; }
  std::string asked() const { return exists(log_ / "log") ? read_file(log_ / "log") : ""; }

 private:
  TempDir log_;
  Running server_;
  std::string port_;
};

class AgentsOfNpm : public testing::TestWithParam<Npm> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    BELLJAR_NEEDS(agents_of_npm());
    model_ = std::make_unique<Model>();
    home_.make_dir(".cache");
    write_settings();
  }
  const Npm& agent() const { return GetParam(); }
  bool is(const Npm& which) const { return agent().name == which.name; }

  // What a user sets once for a model on this machine.
  void write_settings() const {
    home_.write(".codex/config.toml", "model_provider = \"m\"\n[model_providers.m]\nname = \"m\"\nbase_url = \"" + model_->url() +
                                          "/v1\"\nenv_key = \"CODEX_API_KEY\"\nwire_api = \"responses\"\n");
    home_.write(".gemini/settings.json", R"({"security":{"auth":{"selectedType":"gemini-api-key"}}})");
    home_.write(".config/opencode/opencode.json",
                R"({"permission":"allow","provider":{"m":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":")" +
                    model_->url() + R"(/v1","apiKey":"{env:ANTHROPIC_API_KEY}"},"models":{"x":{"name":"x"}}}}})");
  }
  void hand_over() const {
    if (!is_root()) return;
    for (const TempDir* each : {&home_, &workspace_}) each->give_to(user_uid(), user_gid());
  }
  Variables variables() const {
    return {{"HOME", home_.path()},
            {"XDG_STATE_HOME", state_.path()},
            {"PATH", place_of_agents() + ":/usr/local/bin:/usr/bin:/bin"},
            {"TERM", "xterm-256color"},
            {agent().key, "k-of-the-test"},
            {"ANTHROPIC_BASE_URL", model_->url()},
            {"GOOGLE_GEMINI_BASE_URL", model_->url()}};
  }
  Words ask(const std::string& prompt) const {
    Words words{agent().name};
    words.insert(words.end(), agent().before.begin(), agent().before.end());
    words.push_back(prompt);
    words.insert(words.end(), agent().after.begin(), agent().after.end());
    return words;
  }
  // `belljar run OPTIONS -- AGENT`, as root for the user's own files.
  Outcome inside(const Words& words, const Words& options = {}, const std::string& cwd = {}) const {
    hand_over();
    Words args{"run", "--host-port", model_->port()};
    args.insert(args.end(), options.begin(), options.end());
    args.emplace_back("--");
    args.insert(args.end(), words.begin(), words.end());
    return belljar(args, {.stdin_is = Input::kNull, .cwd = cwd.empty() ? workspace_.path() : cwd, .all_env = variables()});
  }
  // The same without Belljar, as that user: what is true of the agent itself.
  Outcome bare(const Words& words) const {
    hand_over();
    Variables own = variables();
    own.erase("XDG_STATE_HOME");
    return run(as_user(words, home_.path()), {.stdin_is = Input::kNull, .cwd = workspace_.path(), .all_env = own});
  }

  // Not in /tmp or /var/tmp, which are the sandbox's own inside: what lies beside the workspace is to be seen.
  TempDir home_{place_of_programs()}, workspace_{place_of_programs()}, state_{layers_base(place_of_programs())};
  std::unique_ptr<Model> model_;
};

inline bool says(const Outcome& outcome, const std::string& text) { return has(outcome.out + outcome.err, text); }

}  // namespace belljar::test
