// belljar caches [--json] | rm [--workspace DIR | --gone | --all]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/rfc3339.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "policy/json.h"
#include "runtime/kept_caches.h"

namespace belljar::cli {
namespace {

using runtime::KeptPoolInfo;

struct CachesFlags {
  bool json = false, gone = false, all = false;
  std::vector<std::string> workspace;
};

std::string json_of(const KeptPoolInfo& pool) {
  std::string caches;
  for (const std::string& cache : pool.caches) caches += (caches.empty() ? "" : ",") + policy::json_text(cache);
  return format(R"({{"workspace":{},"present":{},"in_use":{},"bytes":{},"last_used":{},"caches":[{}]}})"
                "\n",
                policy::json_text(pool.workspace), pool.present, pool.in_use, pool.bytes,
                policy::json_text(rfc3339(pool.last_used)), caches);
}

std::string size_of(const KeptPoolInfo& pool) { return (pool.at_least ? "> " : "") + to_string(Bytes{pool.bytes}); }

std::string line_of(const KeptPoolInfo& pool) {
  const std::string state = pool.in_use ? "in use" : pool.present ? "kept" : "gone";
  return format("{:>9}  {:<6}  {}  {}\n", size_of(pool), state, rfc3339(pool.last_used), escaped(pool.workspace));
}

int list(const CachesFlags& flags) {
  const auto pools = runtime::list_kept_caches(default_state_dir());
  if (!pools) return print_error(pools.error());
  std::string text;
  for (const KeptPoolInfo& pool : *pools) text += flags.json ? json_of(pool) : line_of(pool);
  if (text.empty() && !flags.json) print_note("no caches are kept (filesystem.caches = \"workspace\" keeps them)");
  return print_result(text);
}

Result<void> remove(const CachesFlags& flags) {
  if (static_cast<int>(!flags.workspace.empty()) + static_cast<int>(flags.gone) + static_cast<int>(flags.all) > 1)
    return Error(Code::kInvalidArgument, "cannot remove caches")
        .reason("--workspace, --gone and --all exclude each other")
        .next("name one of them");
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  std::string workspace;
  if (!flags.gone && !flags.all) workspace = BELLJAR_TRY(find_workspace(flags.workspace, home == nullptr ? "" : home));
  std::vector<KeptPoolInfo> pools = BELLJAR_TRY(runtime::list_kept_caches(default_state_dir()));
  std::erase_if(pools, [&](const KeptPoolInfo& pool) {
    if (flags.all) return false;
    return flags.gone ? pool.present : pool.workspace != workspace;
  });
  if (pools.empty()) {
    if (workspace.empty()) return runtime::sweep_kept_caches(default_state_dir());
    return Error(Code::kNotFound, format("no caches are kept for {}", belljar::quoted(workspace)))
        .next("`belljar caches` shows for which workspaces some are");
  }
  Result<void> result;  // one that is in use does not keep the others
  for (const KeptPoolInfo& pool : pools) {
    if (auto removed = runtime::remove_kept_caches(pool); !removed) result = std::move(removed);
    else print_note(format("removed the caches of {} ({})", escaped(pool.workspace), size_of(pool)));
  }
  return result;
}

}  // namespace

void add_caches(const OptionParser& app, int& exit_code) {
  const OptionParser command =
      app.add_subcommand("caches", "Show or remove the caches that are kept for workspaces. `run --caches workspace` keeps them");
  const auto flags = std::make_shared<CachesFlags>();
  command.add_flag("--json", flags->json, "One JSON object a line");
  const OptionParser rm = command.add_subcommand("rm", "Remove those of a workspace");
  rm.add_option("--workspace", flags->workspace, "The workspace (default: the current directory)").repeatable().type_name("DIR");
  rm.add_flag("--gone", flags->gone, "Of all workspaces that are no more");
  rm.add_flag("--all", flags->all, "Of all workspaces");
  rm.callback([flags, &exit_code] {
    if (const auto done = remove(*flags); !done) exit_code = print_error(done.error());
  });
  command.callback([command, rm, flags, &exit_code] {
    if (!command.got(rm)) exit_code = list(*flags);
  });
}

}  // namespace belljar::cli
