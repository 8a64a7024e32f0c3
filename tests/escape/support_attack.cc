#include "escape/support_attack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "support/as_user.h"
#include "support/built.h"
#include "support/eventually.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

std::string base_directory() {
  if (is_root()) return exists("/srv") ? "/srv" : "/opt";
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  return home == nullptr ? std::string() : home;
}

std::string first_line(const Outcome& outcome) {
  if (outcome.signal != 0) return "signal " + std::to_string(outcome.signal);
  if (outcome.exit_code > 128) return "signal " + std::to_string(outcome.exit_code - 128);
  if (outcome.out.empty()) {
    ADD_FAILURE() << "the probe did not run: " << outcome;  // a sandbox that did not start refuses nothing
    return "no word";
  }
  std::string text = outcome.out;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Attack::Attack() : top_(base_directory()) {}

void Attack::SetUp() {
  BELLJAR_NEEDS(user_namespaces());
  ASSERT_EQ(::chmod(top_.path().c_str(), 0755), 0);
  for (const char* part : {"ws", "beside", "home"}) top_.make_dir(part);
  top_.write("ws/probe", read_file(kProbe), 0755);
  hand_over();
}

std::string Attack::below(std::string_view part, std::string_view name) const {
  std::string path = top_ / part;
  return name.empty() ? path : path + "/" + std::string(name);
}

void Attack::plant(const std::string& path, const std::string& content) const {
  top_.write(path.substr(top_.path().size() + 1), content);
  hand_over();
}

void Attack::plant_dir(const std::string& path) const {
  top_.make_dir(path.substr(top_.path().size() + 1));
  hand_over();
}

void Attack::hand_over() const {
  if (is_root()) top_.give_to(user_uid(), user_gid());
}

Running Attack::victim() const {
  Running sleeper(as_user({"sleep", "1000"}));
  EXPECT_TRUE(eventually([&] { return read_file("/proc/" + std::to_string(sleeper.pid()) + "/comm") == "sleep\n"; }));
  return sleeper;
}

RunOptions Attack::in_workspace(RunOptions options) const {
  options.cwd = workspace();
  options.env["HOME"] = home();
  return options;
}

Attack::Words Attack::program(Words arguments) const {
  arguments.insert(arguments.begin(), always_.begin(), always_.end());
  arguments.insert(arguments.begin(), {kBelljar, "run"});
  return arguments;
}

Outcome Attack::run_in(Words arguments, RunOptions options) const {
  return run(program(std::move(arguments)), in_workspace(std::move(options)));
}

Outcome Attack::shell(const std::string& text, Words options) const {
  options.insert(options.end(), {"-c", text});
  Outcome outcome = run_in(std::move(options));
  // A sandbox that did not start refuses nothing.
  EXPECT_TRUE(outcome.exit_code != 125 || !outcome.refused_at_commit.empty()) << outcome;
  return outcome;
}

std::string Attack::inside(Words act, Words options) const {
  options.insert(options.end(), {"--", probe()});
  options.insert(options.end(), act.begin(), act.end());
  const Outcome outcome = run_in(std::move(options));
  const std::string line = first_line(outcome);
  return line == "ok" && !outcome.refused_at_commit.empty() ? "refused at the commit" : line;
}

std::string Attack::outside(Words act) const {
  act.insert(act.begin(), probe());
  return first_line(run(as_user(std::move(act), home()), {.cwd = workspace()}));
}

std::string Attack::outside_as_ourselves(const Words& act) const {
  Words words = act;
  words.insert(words.begin(), probe());
  return first_line(run(words, {.cwd = workspace()}));
}

std::string Attack::outside_in_namespaces(const Words& act) const {
  Words words = {"unshare", "--mount", "--net", "--uts"};
  if (!is_root()) words.insert(words.end(), {"--user", "--map-root-user"});
  words.push_back(probe());
  words.insert(words.end(), act.begin(), act.end());
  return first_line(run(words, {.cwd = workspace()}));
}

UniqueFd listen_unix(const std::string& name, int type) {
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX};
  memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = 0;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) != 0)
    return {};
  if (type == SOCK_STREAM && ::listen(fd.get(), 8) != 0) return {};
  if (name[0] != '@') ::chmod(name.c_str(), 0777);
  return fd;
}

}  // namespace belljar::test
