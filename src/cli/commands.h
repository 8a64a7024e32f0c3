// One file a command. Each add_* hangs its sub-command on the application; when chosen, the callback does the work and leaves the
// exit code of the process in `exit_code`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/components.h"

namespace belljar::cli {

// `program`: the words after `--`, which are not ours to parse. `spare`: as RunFlags has it, or null.
struct SpareWord;
void add_run(const OptionParser& app, std::span<const char* const> words, std::vector<std::string> program, const SpareWord* spare,
             int& exit_code);
void add_policy(const OptionParser& app, int& exit_code);
void add_doctor(const OptionParser& app, int& exit_code);
void add_setup(const OptionParser& app, int& exit_code);
void add_explain(const OptionParser& app, int& exit_code);
void add_agents(const OptionParser& app, int& exit_code);
void add_caches(const OptionParser& app, int& exit_code);
void add_warm(const OptionParser& app, int& exit_code);
// `program`: as for add_run.
void add_learn(const OptionParser& app, std::vector<std::string> program, int& exit_code);

void add_completion(const OptionParser& app, int& exit_code);

// `belljar` alone on a terminal. Returns the exit code.
int welcome();

// Transactions: `run --txn` makes them.
void add_diff(const OptionParser& app, int& exit_code);
void add_commit(const OptionParser& app, int& exit_code);
void add_rollback(const OptionParser& app, int& exit_code);
void add_snapshot(const OptionParser& app, int& exit_code);
void add_fork(const OptionParser& app, int& exit_code);
void add_recover(const OptionParser& app, int& exit_code);

// All of `belljar`: what its main() is, and that of belljar-full's component `tls`.
int serve_command_line(int argc, char** argv);

// The component of belljar-full that does this command; none: this program does it.
std::optional<Component> component_for(std::span<char* const> argv) noexcept;
// Replaces this process by the program that has `component`. `argv`: from our command's word on; `closed`: as reopen_closed_stdio()
// says. Does not return unless it fails.
int hand_over(Component component, char** argv, unsigned closed);

}  // namespace belljar::cli
