// What the agents in PATH take longer to say their version under their profiles: the least that a user's start costs.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/rows.h"

namespace belljar::bench {

void bench_agents(const Setting& setting, Report& report) {
  for (const std::string agent : {"claude", "codex", "gemini", "opencode"}) {
    const Argv bare = {agent, "--version"};
    if (!installed(agent) || run_process(bare) != 0) {
      report.left_out.push_back(agent + ": not installed");
      continue;
    }
    const std::vector<Rival> rivals = {
        {agent + ", bare", [&] { return run_process(bare) == 0; }},
        {agent + ", in the jar",
         [&] { return run_process({setting.belljar, "run", "--workspace", setting.directory, "--", agent, "--version"}) == 0; }}};
    std::vector<std::string> failed;
    const std::vector<Samples> samples = compare(rivals, std::max(setting.runs / 10, 5), failed);
    for (const std::string& name : failed) report.left_out.push_back(name + ": a run failed, so none is shown");
    if (!failed.empty()) continue;
    for (std::size_t i = 0; i < rivals.size(); ++i) report.add("agents", rivals[i].name, samples[i]);
    report.compare_rows("agents", rivals[1].name, rivals[0].name, 1.06);
  }
}

}  // namespace belljar::bench
