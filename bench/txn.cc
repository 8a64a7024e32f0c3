// Transactions: what one costs a run, and that snapshots, rollbacks, diffs and commits follow the change and not the workspace.
#include "belljar/txn.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "bench/rows.h"
#include "txn/base.h"
#include "txn/commit.h"
#include "txn/store.h"

namespace belljar::bench {
namespace {

constexpr const char* kTxnGroup = "txn";
constexpr int kFilesBelow = 100'000;

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Files `0` to `count` in directories of a thousand.
void fill(const std::string& directory, int count, const std::string& text) {
  for (int i = 0; i < count; ++i) {
    const std::string folder = format("{}/d{}", directory, i / 1000);
    if (i % 1000 == 0) std::filesystem::create_directories(folder);
    put(format("{}/f{}", folder, i), text);
  }
}

// A run that changed `count` files of the workspace, written into the layer as overlayfs would, below `folder`.
bool change(const txn::Place& place, int count, const std::string& folder = {}) {
  auto transaction = txn::Transaction::open(place, txn::Store::Open::kCreate, txn::Access::kChange);
  if (!transaction) return false;
  const auto layers = txn::begin_run(*transaction);
  if (!layers) return false;
  fill(format("{}/{}/up{}", layers->pool, layers->upper, folder), count, "some text that a file may hold\n");
  return txn::observe(*transaction).has_value();
}

template <class Act>
bool timed(Samples& samples, Act act) {
  const double before = now_us();
  const bool well = act();
  samples.us.push_back(now_us() - before);
  return well;
}

struct Bench {
  const Setting& setting;
  Report& report;
  txn::Place place;

  void bound(const std::string& name, const Samples& samples, double target_us) const {
    report.add(kTxnGroup, name, samples);
    if (Row* row = report.find(kTxnGroup, name)) row->target = target_us;
  }

  // Whole processes in turns, on a workspace with 100 000 files.
  void starts() const {
    const auto run = [this](Argv options) {
      Argv argv = {"/usr/bin/env", "XDG_STATE_HOME=" + setting.directory + "/txn", setting.belljar, "run", "--workspace",
                   place.workspace};
      argv.insert(argv.end(), options.begin(), options.end());
      argv.insert(argv.end(), {"--", "/bin/true"});
      return run_process(argv) == 0;
    };
    std::vector<std::string> failed;
    const auto samples =
        compare({{"run", [&] { return run({}); }}, {"run --txn", [&] { return run({"--txn"}); }}}, setting.runs, failed);
    for (const std::string& name : failed) report.left_out.push_back("transactions: " + name + " failed");
    if (!failed.empty()) return;
    report.add(kTxnGroup, "run -- true, 100 000 files below", samples[0]);
    report.add(kTxnGroup, "the same in a transaction", samples[1]);
    report.add(kTxnGroup, "added to the whole run by the transaction", added(samples));
  }

  // From before the process until the command has run its first line.
  void until_the_command() const {
    Samples samples[2];
    for (int i = 0; i < setting.runs; ++i) {
      for (int txn = 0; txn < 2; ++txn) {
        const double before = real_us();
        const double there = clock_inside(txn != 0);
        if (there == 0) return report.left_out.push_back("transactions: until the command: a run failed");
        samples[txn].us.push_back(there - before);
      }
    }
    report.add(kTxnGroup, "until the command runs", samples[0]);
    report.add(kTxnGroup, "the same in a transaction, until then", samples[1]);
    bound("added to the start by the transaction", added({samples[0], samples[1]}), 2000);
  }

  void layers() const {
    Samples snapshot;
    Samples back;
    Samples whole;
    bool well = true;
    for (int i = 0; well && i < 10; ++i) {
      well = change(place, 1000) && timed(snapshot, [&] { return txn::snapshot(place, "s").has_value(); }) && change(place, 1000) &&
             timed(back, [&] { return txn::rollback(place, "s").has_value(); }) &&
             timed(whole, [&] { return txn::rollback(place).has_value(); }) && txn::sweep(place).has_value();
    }
    if (!well) return report.left_out.push_back("transactions: a snapshot or rollback failed");
    bound("snapshot, 100 000 below, 1 000 changed", snapshot, 1000);
    bound("rollback to a snapshot, the same", back, 1000);
    bound("rollback of everything, the same", whole, 1000);
  }

  void sizes() const {
    for (const int count : {100, 1000, 5000}) {
      Samples diff;
      Samples commit;
      bool well = true;
      for (int i = 0; well && i < 2; ++i) {
        // Each time other bytes, or there would be nothing to commit.
        well = change(place, count) && touch_all(count, i) && timed(diff, [&] { return txn::diff(place).has_value(); }) &&
               timed(commit, [&] {
                 const auto done = txn::commit_with(place, {}, {});
                 return done && done->applied;
               });
        if (const auto swept = txn::sweep(place); !swept) well = false;
      }
      if (!well) return report.left_out.push_back("transactions: a diff or commit failed");
      report.add(kTxnGroup, format("diff, {} changed", count), per_file(diff, count));
      report.add(kTxnGroup, format("commit, {} changed", count), per_file(commit, count));
      name_unit(format("diff, {} changed", count));
      name_unit(format("commit, {} changed", count));
    }
  }

  // New directories, as a package manager or a build makes them.
  void new_directories() const {
    constexpr int kNew = 30'000;
    Samples commit;
    bool well = true;
    for (int i = 0; well && i < 5; ++i) {
      well = change(place, kNew, "/new") && timed(commit, [&] {
               const auto done = txn::commit_with(place, {}, {});
               return done && done->applied && txn::sweep(place).has_value();
             });
      std::filesystem::remove_all(place.workspace + "/new");
    }
    if (!well) return report.left_out.push_back("transactions: a commit of new directories failed");
    const std::string name = "commit, 30 000 new files in new directories";
    bound(name, per_file(commit, kNew), 12);
    name_unit(name);
  }

 private:
  static Samples added(const std::vector<Samples>& pair) {
    Samples more;
    for (std::size_t i = 0; i < pair[0].us.size(); ++i) more.us.push_back(pair[1].us[i] - pair[0].us[i]);
    return more;
  }

  static double real_us() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  }

  // In microseconds since 1970; 0: it failed.
  double clock_inside(bool txn) const {
    const std::string command = format("XDG_STATE_HOME='{}/txn' '{}' run {} --workspace '{}' -- bash -c 'echo $EPOCHREALTIME'",
                                       setting.directory, setting.belljar, txn ? "--txn" : "", place.workspace);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "re"), ::pclose);
    char line[64] = {};
    if (pipe == nullptr || std::fgets(line, sizeof line, pipe.get()) == nullptr) return 0;
    return std::strtod(line, nullptr) * 1e6;
  }

  static Samples per_file(Samples samples, int count) {
    for (double& value : samples.us) value /= count;
    return samples;
  }
  void name_unit(const std::string& name) const {
    if (Row* row = report.find(kTxnGroup, name)) row->unit = "us a file";
  }

  bool touch_all(int count, int round) const {
    auto transaction = txn::Transaction::open(place, txn::Store::Open::kExisting, txn::Access::kRead);
    if (!transaction) return false;
    const std::string up = format("{}/layers/{}/up", transaction->store().path(), transaction->meta().chain.back());
    for (int i = 0; i < count; ++i) put(format("{}/d{}/f{}", up, i / 1000, i), format("round {} of {}\n", round, count));
    return true;
  }
};

}  // namespace

void bench_txn(const Setting& setting, Report& report) {
  const std::string top = setting.directory + "/txn";
  std::filesystem::create_directories(top + "/ws");
  const Bench bench{setting, report, {.workspace = top + "/ws", .state_dir = top + "/belljar"}};
  fill(bench.place.workspace, kFilesBelow, "");
  ::sync();  // what was just written is no part of what is measured
  bench.starts();
  bench.until_the_command();
  if (const auto dropped = txn::rollback(bench.place); !dropped) report.left_out.push_back(dropped.error().line());
  bench.layers();
  bench.sizes();
  bench.new_directories();
}

}  // namespace belljar::bench
