// The library, without a front process of its own: start to reap, sandboxes made beforehand, commands in a live sandbox, and the
// steps of a start.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "backend/native/native.h"
#include "base/unique_fd.h"
#include "bench/probe.h"
#include "bench/rows.h"
#include "launch/launcher.h"

namespace belljar::bench {
namespace {

constexpr const char* kLibraryGroup = "library";

backend::Workplace place_of(const Setting& setting) {
  backend::Workplace place;
  place.workspace = place.cwd = setting.directory;
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  place.home = home == nullptr ? "" : home;
  place.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + place.home};
  return place;
}

Result<backend::Prepared> prepare(const Setting& setting) {
  const backend::RealHost host;  // facts are read anew for each start, as a server must
  backend::NativeBackend native(host);
  return native.prepare(Policy{}, place_of(setting));
}

launch::ExecRequest request_for_true() {
  launch::ExecRequest request;
  request.argv = {"/bin/true"};
  return request;
}

// Until a command ends; true when it exited with 0.
bool await_exit(launch::Sandbox& sandbox) {
  for (;;) {
    const auto event = sandbox.next_event();
    if (!event) {
      pollfd wait{sandbox.control_fd(), POLLIN, 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    if (event->kind == launch::Event::Kind::kStarted || event->kind == launch::Event::Kind::kPending) continue;
    return event->kind == launch::Event::Kind::kExited && event->exit.wait_status == 0;
  }
}

bool start_to_reap(const Setting& setting, std::map<std::string, Samples>* steps) {
  auto prepared = prepare(setting);
  if (!prepared) return false;
  const launch::ExecRequest request = request_for_true();
  auto sandbox = launch::start(prepared->plan, &request, {.time_steps = steps != nullptr});
  if (!sandbox) return false;
  if (steps != nullptr) {
    for (const launch::StepTime& step : sandbox->steps())
      (*steps)[std::string(step.name)].us.push_back(static_cast<double>(step.nanoseconds) / 1e3);
  }
  const bool well = await_exit(*sandbox);
  sandbox->kill_and_reap();
  return well;
}

void bench_premade(const Setting& setting, Report& report) {
  Samples samples;
  const launch::ExecRequest request = request_for_true();
  for (int i = -3; i < setting.runs; ++i) {
    auto prepared = prepare(setting);
    if (!prepared) return report.left_out.push_back("pre-made sandbox: " + prepared.error().line());
    auto sandbox = launch::start(prepared->plan, nullptr, {});
    if (!sandbox) return report.left_out.push_back("pre-made sandbox: " + sandbox.error().line());
    const double before = now_us();
    const bool well = sandbox->exec(request).has_value() && await_exit(*sandbox);
    sandbox->kill_and_reap();
    if (!well) return report.left_out.push_back("pre-made sandbox: the command failed");
    if (i >= 0) samples.us.push_back(now_us() - before);
  }
  report.add(kLibraryGroup, "exec to reap, sandbox made before", samples);
}

void bench_warm(const Setting& setting, Report& report) {
  auto prepared = prepare(setting);
  if (!prepared) return;
  auto sandbox = launch::start(prepared->plan, nullptr, {});
  if (!sandbox) return report.left_out.push_back("live sandbox: " + sandbox.error().line());
  const launch::ExecRequest request = request_for_true();
  std::vector<std::string> failed;
  const std::vector<Rival> rivals = {{"posix_spawn", [] { return run_process({"/bin/true"}) == 0; }},
                                     {"exec in a live sandbox", [&] { return sandbox->exec(request) && await_exit(*sandbox); }}};
  const auto samples = compare(rivals, setting.runs, failed);
  for (std::size_t i = 0; i < rivals.size(); ++i) report.add(kLibraryGroup, rivals[i].name, samples[i]);
  report.compare_rows(kLibraryGroup, "exec in a live sandbox", "posix_spawn", 1.3);
}

}  // namespace

void bench_library(const Setting& setting, Report& report) {
  std::vector<std::string> failed;
  const auto samples = compare(
      {{"fresh", [&] { return start_to_reap(setting, nullptr); }}, {"probe", [&] { return plain_probe(setting.directory); }}},
      setting.runs, failed);
  if (samples[0].us.empty()) {
    const auto prepared = prepare(setting);
    report.left_out.push_back("library: " + (prepared ? std::string("a start failed") : prepared.error().line()));
    return;
  }
  report.add(kLibraryGroup, "prepare to reap, fresh", samples[0]);
  add_plain_probe(report, kLibraryGroup, report.rows.back().name, samples[1]);
  bench_premade(setting, report);
  if (Row* row = report.find(kLibraryGroup, "exec to reap, sandbox made before")) row->target = 1000;
  bench_warm(setting, report);

  std::map<std::string, Samples> steps;
  Samples prepares;
  for (int i = 0; i < setting.runs; ++i) {
    start_to_reap(setting, &steps);
    const double before = now_us();
    const auto prepared = prepare(setting);
    prepares.us.push_back(now_us() - before);
  }
  report.add("step", "prepare", prepares);
  // In the order of the start.
  const auto prepared = prepare(setting);
  const launch::ExecRequest request = request_for_true();
  auto sandbox = launch::start(prepared->plan, &request, {.time_steps = true});
  for (const launch::StepTime& step : sandbox->steps()) report.add("step", std::string(step.name), steps[std::string(step.name)]);
}

}  // namespace belljar::bench
