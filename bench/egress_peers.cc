// The way out of a sandbox as its commands see it, ours beside the peers': one client, run inside each, talks to one server outside
// through whatever proxy it is told of there.
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/unique_fd.h"
#include "bench/loopback.h"
#include "bench/measure.h"
#include "bench/rows.h"
#include "egress/http.h"

namespace belljar::bench {
namespace {

constexpr char kEgressPeersGroup[] = "egress";
constexpr char kBytes[] = "64 MiB inside", kRoundTrip[] = "round trip inside", kConnect[] = "connect inside";
constexpr int kRoundsOfBytes = 3, kRoundTrips = 400, kConnections = 150;

struct Way {
  std::uint16_t proxy = 0;  // none
  std::string authorization;
};

// `http://[USER:PASSWORD@]HOST:PORT`, as all of them write it.
Way way_out() {
  const char* variable = std::getenv("http_proxy");
  if (variable == nullptr) variable = std::getenv("HTTP_PROXY");
  if (variable == nullptr) return {};
  std::string url = std::string(variable).substr(std::string_view("http://").size());
  Way way;
  way.proxy = static_cast<std::uint16_t>(std::atoi(url.substr(url.rfind(':') + 1).c_str()));
  const std::size_t at = url.rfind('@');
  if (at == std::string::npos) return way;
  std::string who = url.substr(0, at);
  for (std::size_t i = who.find('%'); i != std::string::npos; i = who.find('%', i + 1))
    who.replace(i, 3, 1, static_cast<char>(std::strtol(who.substr(i + 1, 2).c_str(), nullptr, 16)));
  way.authorization = "Basic " + belljar::to_base64(who);
  return way;
}

void write_text(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

// What each of them needs to let 127.0.0.1 through.
std::vector<Peer> peers(const Setting& setting, const std::string& client) {
  const std::string& here = setting.directory;
  const std::string home = here + "/codex";
  std::filesystem::create_directory(home);
  write_text(home + "/config.toml",
             "default_permissions = \"bench\"\n[features]\nnetwork_proxy = true\n[permissions.bench]\nextends = \":workspace\"\n"
             "[permissions.bench.network]\nenabled = true\n[permissions.bench.network.domains]\n\"127.0.0.1\" = \"allow\"\n");
  write_text(here + "/srt.json", R"({"network":{"allowedDomains":["127.0.0.1"],"deniedDomains":[]},)"
                                 R"("filesystem":{"denyRead":[],"allowWrite":[")" +
                                     here + R"("],"denyWrite":[]}})");
  return {{"no sandbox", {"sh", "-c", client}},
          {"belljar", {setting.belljar, "run", "--workspace", here, "--allow-domain", "127.0.0.1", "--", "sh", "-c", client}},
          {"srt", {"srt", "--settings", here + "/srt.json", "-c", client}},
          {"codex", {"env", "CODEX_HOME=" + home, "codex", "sandbox", "-P", "bench", "-C", here, "--", "sh", "-c", client}}};
}

}  // namespace

int egress_inside(const std::string& directory, int server) {
  const Way way = way_out();
  const auto port = static_cast<std::uint16_t>(server);
  std::ofstream out(directory + "/times");
  const UniqueFd open = tunnel(way.proxy, port, way.authorization);
  bool well = open.valid();
  const auto take = [&](const char* name, int rounds, auto act) {
    for (int round = -1; round < rounds && well; ++round) {  // the first warms up
      const double before = now_us();
      well = act();
      if (round >= 0) out << name << '\t' << now_us() - before << '\n';
    }
  };
  take(kRoundTrip, kRoundTrips, [&] { return ping(open.get()); });
  take(kBytes, kRoundsOfBytes, [&] { return read_bulk(open.get()); });
  take(kConnect, kConnections, [&] { return ping(tunnel(way.proxy, port, way.authorization).get()); });
  return well && out.flush() ? 0 : 1;
}

void bench_egress_peers(const Setting& setting, Report& report) {
  constexpr int kRounds = 5;
  ::chmod(setting.directory.c_str(), 0777);
  const Echo server;
  const std::string client = std::filesystem::read_symlink("/proc/self/exe").string() + " --egress-inside " + setting.directory +
                             " " + std::to_string(server.port);
  std::map<std::string, std::map<std::string, Samples>> of;  // peer, then what was measured
  std::vector<Peer> running = peers(setting, client);
  std::erase_if(running, [&](const Peer& peer) {
    const bool gone = !installed(peer.argv[0] == "env" ? peer.argv[2] : peer.argv[0]);
    if (gone) report.left_out.push_back(peer.name + ", the way out: not installed");
    return gone;
  });
  for (int round = 0; round < kRounds; ++round) {
    std::erase_if(running, [&](const Peer& peer) {
      std::filesystem::remove(setting.directory + "/times");
      if (run_process(peer.argv) != 0) {
        report.left_out.push_back(peer.name + ", the way out: the client inside failed, so none is shown");
        of.erase(peer.name);
        return true;
      }
      for (const auto& [name, samples] : read_times(setting.directory + "/times")) {
        std::vector<double>& all = of[peer.name][name].us;
        all.insert(all.end(), samples.us.begin(), samples.us.end());
      }
      return false;
    });
  }
  for (const char* name : {kBytes, kRoundTrip, kConnect}) {
    for (const Peer& peer : running) report.add(kEgressPeersGroup, std::string(name) + ", " + peer.name, of[peer.name][name]);
    const std::string ours = std::string(name) + ", belljar";
    report.compare_rows(kEgressPeersGroup, ours, std::string(name) + ", no sandbox", 0);
    for (const char* other : {"srt", "codex"}) report.compare_rows(kEgressPeersGroup, std::string(name) + ", " + other, ours, 0);
  }
}

}  // namespace belljar::bench
