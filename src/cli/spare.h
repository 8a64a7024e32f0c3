// `belljar run --warm`: sandboxes that are made before their run comes. A spare is a whole `belljar run` that waits behind its
// start.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/paths/witness.h"
#include "base/unique_fd.h"
#include "belljar/command.h"
#include "belljar/result.h"
#include "cli/load.h"
#include "cli/run_flags.h"
#include "front/signals.h"
#include "runtime/run.h"
#include "warm/caller.h"
#include "warm/door.h"

namespace belljar::cli {

// The first word of a spare's command line, before `run`.
inline constexpr std::string_view kSpareWord = "__spare";

// Whether a spare can stand for a run with these options and this policy.
bool can_be_warm(const RunFlags& flags, const LoadedPolicy& loaded);

// Starts a process that makes a spare for the next run with these words. Nothing comes of it where there are enough, or where
// spares were told to end after `now`. `as`: what this run was begun with; the limit of open files that is another one since is put
// back meanwhile.
void start_spare(const warm::RunWords& words, const warm::wire::Inherited& as, WallTime now = std::chrono::system_clock::now());
// `word`: kSpareWord as start_spare() wrote it.
SpareWord read_spare_word(std::string_view word);
// The words of this process's own run, for start_spare().
warm::RunWords words_of_run(const RunFlags& flags);

// The spare of this process. One thread.
class RunSpare final : public runtime::Spare, public front::RemoteEnd {
 public:
  // At the beginning of the process. Errors: the kernel does not say what this process is.
  static Result<std::unique_ptr<RunSpare>> create(RunFlags& flags);

  const backend::Host& host() const noexcept { return host_; }
  // What is read to load `loaded` is noted: what is loaded after this call counts.
  void note_files(const LoadedPolicy& loaded) const;
  // What the run is about, which the client changes. All must outlive this.
  void attend(Command& command, LoadedPolicy& loaded, RunRecord& record) noexcept;
  bool is_used() const noexcept { return client_.has_value(); }
  // The run is over, what follows is told to people: a client that is gone or told to end is not waited for any more.
  void watch_client() const;
  // Everything is written: tells the client.
  void finish(int exit_code);

  Result<front::RemoteEnd*> await_use(int sandbox_pidfd, std::vector<std::string>& env) override;
  void starting() override;
  void begun() override;

  int fd() const noexcept override;
  std::optional<int> next() noexcept override;
  void stop() noexcept override;

 private:
  explicit RunSpare(RunFlags& flags) : flags_(flags) {}
  // kOther: of the same kind, but another caller. kStale: the host is another, and nobody can be served any more.
  enum class Fit { kServes, kAnother, kOther, kStale };
  Fit fit_of(const warm::Visitor& visitor);
  Result<void> take(warm::Visitor visitor, std::vector<std::string>& env);
  std::string told() const;

  RunFlags& flags_;
  Command* command_ = nullptr;
  LoadedPolicy* loaded_ = nullptr;
  RunRecord* record_ = nullptr;
  backend::Witness host_;
  warm::Caller own_;
  warm::RunWords words_;
  std::string kind_;
  warm::wire::Inherited inherited_;
  std::string path_;  // PATH inside
  std::string proof_;
  UniqueFd proof_file_;
  std::string host_name_;
  std::optional<warm::Door> door_;
  std::optional<warm::Visitor> client_;
  bool alone_ = false;  // no other spare of its kind is there
};

}  // namespace belljar::cli
