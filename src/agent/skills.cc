// Skills of the user: names and descriptions in the system prompt, bodies on demand.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/json.h"
#include "agent/skill_file.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/tools.h"

namespace belljar {
namespace {

using agent::Skill;

constexpr std::size_t kMostSkills = 100, kMostSkillBytes = 256U << 10;

// What it says counts as the user's words, so nobody else may be able to write it.
Result<std::string> read_own(const std::string& path, const std::string& workspace) {
  const auto failed = [&] { return Error(Code::kPermissionDenied, "cannot read " + belljar::quoted(path)); };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about{};
  if (!file.valid() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return failed().reason("it is no file that we may read");
  if ((about.st_uid != ::geteuid() && about.st_uid != 0) || (about.st_mode & 022) != 0)
    return failed().reason("somebody else may write it");
  // Of what was opened: links were followed.
  char real[PATH_MAX];
  const ssize_t size = ::readlink(format("/proc/self/fd/{}", file.get()).c_str(), real, sizeof real);
  if (!workspace.empty() && (size <= 0 || std::string_view(real, static_cast<std::size_t>(size)).starts_with(workspace + "/")))
    return failed().reason("it lies in the workspace, where a command may have written it");
  std::string text(kMostSkillBytes + 1, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  if (got < 0 || static_cast<std::size_t>(got) > kMostSkillBytes) return failed().reason("it is larger than 256 KiB");
  text.resize(static_cast<std::size_t>(got));
  return text;
}

std::vector<std::string> files_in(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const fs::path path = at->path();
    if (path.filename().native().starts_with('.')) continue;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      if (fs::exists(path / "SKILL.md", ignored)) files.push_back(path / "SKILL.md");
    } else if (path.extension() == ".md") {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Skills final : public AgentMiddleware {
 public:
  explicit Skills(std::vector<Skill> all) : all_(std::move(all)) {}

  std::string prompt() const override {
    if (all_.empty()) return {};
    std::string text =
        "The user keeps skills: how certain work is to be done. When a description fits the task, read that skill with the tool "
        "`skill` first.\n";
    for (const Skill& skill : all_) text += format("- {}: {}\n", skill.name, skill.description);
    return text;
  }
  std::vector<ToolSpec> tools() const override {
    if (all_.empty()) return {};
    return {{.name = "skill",
             .title = "Read a skill",
             .description = "Reads one of the user's skills, by its name.",
             .kind = ToolKind::kRead,
             .input_schema =
                 R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false})"}};
  }
  MiddlewareAnswer call(AgentRun& /*run*/, const ToolUse& call) override {
    const std::string name = agent::text_of(agent::arguments_of(call), "name");
    std::string names;
    for (const Skill& skill : all_) {
      if (skill.name == name) return {.result = {.text = skill.body}, .trusted = true};
      names += (names.empty() ? "" : ", ") + skill.name;
    }
    return {.result = {.text = format("there is no skill {}; there are {}", belljar::quoted(name), names), .failed = true}};
  }

 private:
  const std::vector<Skill> all_;
};

}  // namespace

std::shared_ptr<AgentMiddleware> skills(const std::string& directory, const std::function<void(std::string)>& warn,
                                        const std::string& workspace) {
  const auto tell = [&](const std::string& what) {
    if (warn) warn(what);
  };
  std::vector<Skill> all;
  for (const std::string& file : files_in(directory)) {
    const auto text = read_own(file, workspace);
    const auto skill = text ? agent::parse_skill(*text) : Result<Skill>(text.error());
    const bool known = skill && std::any_of(all.begin(), all.end(), [&](const Skill& other) { return other.name == skill->name; });
    if (!skill) tell(format("skill {} is passed over: {}", belljar::quoted(file), skill.error().reason()));
    else if (known) tell(format("skill {} is passed over: there is one of that name", belljar::quoted(file)));
    else if (all.size() >= kMostSkills) tell(format("skill {} is passed over: 100 are the most", belljar::quoted(file)));
    else all.push_back(*skill);
  }
  return std::make_shared<Skills>(std::move(all));
}

}  // namespace belljar
