// The rows of the benchmark. Each group measures one promise of docs/SPECIFICATION.md and adds its rows to the report.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"

namespace belljar {
class Sandbox;
}

namespace belljar::bench {

struct Row {
  std::string group, name;
  std::string unit = "us";
  double p50 = 0, p99 = 0;
  double p10 = 0, p90 = 0;  // how far single ones lie apart; both 0: not known
  int runs = 0;
  double ratio = 0;     // against the row that `against` names, by p50; 0: none
  std::string against;  // which row it is compared with
  double target = 0;    // the promised upper bound of the ratio (or of p50 where there is no ratio); 0: none
  std::string where;    // measured elsewhere than the report says, in an earlier run; "": there
};

struct Report {
  std::string where;  // circumstances()
  std::vector<Row> rows;
  std::vector<std::string> left_out;  // "crun: not installed"

  void add(std::string group, std::string name, const Samples& samples);
  Row* find(const std::string& group, const std::string& name);
  // Fills in `ratio` of `name` against `against`, both of `group`.
  void compare_rows(const std::string& group, const std::string& name, const std::string& against, double target);
};

// Another's sandbox, and how it runs what we run.
struct Peer {
  std::string name;
  Argv argv;
};

struct Setting {
  std::string belljar;    // the program under test
  std::string directory;  // a scratch directory, the workspace of every run
  int runs = 200;
  int sandboxes = 500;  // that are idle at one time; 0: not measured
  int execs = 20'000;   // of the soak; 0: none
  int files = 100'000;  // in the largest workspace of bench_trees
  int requests = 0;     // of the soak of the proxy; 0: none
};

void bench_process(const Setting& setting, Report& report);       // whole processes, beside the peers installed
void bench_agents(const Setting& setting, Report& report);        // the agents of docs/agents, beside themselves without Belljar
void bench_library(const Setting& setting, Report& report);       // start to reap, exec in a live sandbox, the steps of a start
void bench_end(const Setting& setting, Report& report);           // from SIGKILL to the front until its tree is gone
void bench_egress(const Setting& setting, Report& report);        // the proxy beside a direct connection
void bench_egress_peers(const Setting& setting, Report& report);  // of group egress: the way out, from inside each peer
void bench_txn(const Setting& setting, Report& report);           // transactions over 100 000 files
void bench_guard(const Setting& setting, Report& report);         // a command judged, a text scanned
void bench_work(const Setting& setting, Report& report);          // build, git status, output, memory
void bench_files(const Setting& setting, Report& report);         // what a brokered call on files costs more, 1 and 8 writers
void bench_trees(const Setting& setting, Report& report);         // clone, unpack; starts in large workspaces
void bench_session(const Setting& setting, Report& report);       // the library's Sandbox: commands, files, many idle ones, a soak
void bench_idle(const Setting& setting, Report& report);          // of group session: many that do nothing
void bench_burst(const Setting& setting, Report& report);         // a hundred at once, a thousand in a stream, beside the peers
void bench_container(const Setting& setting, Report& report);     // containers beside the engine's own exec and run

// How each peer runs /bin/true in a sandbox of its own.
std::vector<Peer> process_peers(const Setting& setting);
// Whether /bin/true runs there.
bool exec_true(Sandbox& sandbox);
// What bench_files runs inside: writes its times to DIRECTORY/times. Returns an exit code.
int files_inside(const std::string& directory, int writers, int rounds);
// What bench_egress_peers runs inside: talks to the Echo at `server`, through the proxy that the environment names, and writes its
// times to DIRECTORY/times. Returns an exit code.
int egress_inside(const std::string& directory, int server);
// MemAvailable of the machine.
double available_kib();
// What bench_idle starts: holds `count` sandboxes until standard input ends, and writes what it saw to `notes`.
int hold_idle(const std::string& directory, const std::string& notes, int count);

}  // namespace belljar::bench
