#include "runtime/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace belljar::runtime {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

ExecResult sample() {
  ExecResult result;
  result.exit_code = 137;
  result.signal = 9;
  result.reason = Reason::kMemory;
  result.message = "out of memory";
  result.limits_hit = {"memory"};
  result.out = {
      "caf\xC3\xA9\xFF\x00!"
      "x",
      12, 3};
  result.err = {"", 0, 0};
  result.duration = 1500us;
  result.usage = {2ms, 1ms, Bytes{4096}};
  result.violations = {{std::chrono::system_clock::time_point(1'700'000'000s + 5us),
                        7,
                        3,
                        "curl",
                        "unix-connect",
                        "/run/\x01\xFE",
                        "network.allow_unix_sockets",
                        {"user", "/p.toml", 4},
                        13,
                        "own sockets"}};
  result.violations_dropped = 2;
  result.violations_hidden = 3;
  result.enforcement = {{"limits.memory", "64MiB", "cgroup v2", Enforced::kPartial, "swap is not limited"}};
  return result;
}

TEST(Json, HasTheFieldsOfTheResult) {
  const json object = json::parse(to_json(sample(), JsonStreams::kInclude));
  EXPECT_EQ(object["exit_code"], 137);
  EXPECT_EQ(object["signal"], 9);
  EXPECT_EQ(object["reason"], "memory");
  EXPECT_EQ(object["message"], "out of memory");
  EXPECT_EQ(object["limits_hit"], json({"memory"}));
  EXPECT_EQ(object["stdout_bytes"], 12);
  EXPECT_EQ(object["stdout_omitted"], 3);
  EXPECT_EQ(object["stderr"], "");
  EXPECT_EQ(object["duration_ms"], 1.5);
  EXPECT_EQ(object["usage"], json::parse(R"({"cpu_user_ms": 2.0, "cpu_system_ms": 1.0, "peak_memory_bytes": 4096})"));
  EXPECT_EQ(object["violations_dropped"], 2);
  EXPECT_EQ(object["enforcement"], json::parse(R"([{"clause": "limits.memory", "asked": "64MiB", "mechanism": "cgroup v2",
                                                    "enforced": "partial", "detail": "swap is not limited"}])"));
  const json& violation = object["violations"].at(0);
  EXPECT_EQ(violation["time"], "2023-11-14T22:13:20.000005Z");
  EXPECT_EQ(violation["operation"], "unix-connect");
  EXPECT_EQ(violation["errno"], 13);
  EXPECT_EQ(violation["target"], "/run/\x01\xEF\xBF\xBD");
  EXPECT_EQ(violation["target_hex"], "2f72756e2f01fe");
  EXPECT_EQ(violation["errno_name"], "EACCES");
  EXPECT_EQ(violation["count"], 1);
  EXPECT_EQ(violation["origin"], json::parse(R"({"layer": "user", "file": "/p.toml", "line": 4})"));
  EXPECT_EQ(object["violations_hidden"], 3);
  EXPECT_TRUE(object["id"].is_null());
}

TEST(Json, ReplacesAndCountsBytesThatAreNoUtf8) {
  ExecResult result = sample();
  result.out.bytes = std::string("a\xFF\xC3(\xED\xA0\x80\0z", 9);
  const json object = json::parse(to_json(result, JsonStreams::kInclude));
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(object["stdout"], "a" + bad + bad + "(" + bad + bad + bad + std::string("\0z", 2));
  EXPECT_EQ(object["stdout_replaced"], 5);
}

TEST(Json, ASuccessHasNoSignalAndNoStreamsInAReport) {
  const json object = json::parse(to_json(ExecResult{}, JsonStreams::kOmit));
  EXPECT_TRUE(object["signal"].is_null());
  EXPECT_EQ(object["reason"], "exited");
  EXPECT_TRUE(object["usage"]["peak_memory_bytes"].is_null());
  EXPECT_FALSE(object.contains("stdout"));
  EXPECT_EQ(object["violations"], json::array());
}

TEST(Json, IsOneLine) {
  ExecResult result;
  result.out.bytes = "a\nb\r\n";
  EXPECT_EQ(to_json(result, JsonStreams::kInclude).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace belljar::runtime
