#include "remote/e2b/events.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "belljar/error.h"
#include "belljar/files.h"

namespace belljar::remote::e2b {
namespace {

using namespace std::string_literals;

Event event(const std::string& json) {
  const auto parsed = parse_event(json);
  EXPECT_TRUE(parsed) << json << parsed.error().line();
  return parsed ? *parsed : Event{};
}

TEST(Events, OfAProcess) {
  EXPECT_EQ(event(R"({"event":{"start":{"pid":7}}})").pid, 7U);
  EXPECT_EQ(event(R"({"event":{"data":{"stdout":"AP8K"}}})").bytes, "\0\xff\n"s);
  EXPECT_EQ(event(R"({"event":{"data":{"stderr":"ZQ=="}}})").kind, EventKind::kStderr);
  EXPECT_EQ(event(R"({"event":{"data":{"pty":"ZQ=="}}})").kind, EventKind::kStdout);
  EXPECT_EQ(event(R"({"event":{"keepalive":{}}})").kind, EventKind::kOther);
  EXPECT_EQ(event(R"({"event":{"of a later version":{}}})").kind, EventKind::kOther);
  EXPECT_EQ(event("{}").kind, EventKind::kOther) << "JSON leaves out what is not set, and so what this version does not know";
}

TEST(Events, HowItEnded) {
  const auto end = [](const std::string& fields) { return event(R"({"event":{"end":{)" + fields + "}}}"); };
  EXPECT_EQ(end(R"("exited":true,"status":"exit status 0")").exit_code, 0) << "zeros are left out";
  EXPECT_EQ(end(R"("exited":true,"exitCode":3,"status":"exit status 3")").exit_code, 3);
  EXPECT_EQ(end(R"("exited":true,"exitCode":"3")").exit_code, 3) << "numbers may be text";
  EXPECT_EQ(end(R"("exited":true,"exitCode":255)").exit_code, 255);
  EXPECT_EQ(end(R"("exitCode":-1,"status":"signal: killed")").signal, SIGKILL);
  EXPECT_EQ(end(R"x("exitCode":-1,"status":"signal: segmentation fault (core dumped)")x").signal, SIGSEGV);
  EXPECT_EQ(end(R"("exitCode":-1,"status":"signal: signal 42")").exit_code, 128 + 42);
  EXPECT_EQ(end(R"("exited":true,"exitCode":1,"status":"signal: killed")").signal, 0) << "it says so of itself";
}

TEST(Events, NonsenseIsAnError) {
  for (const char* json : {"", "{", "[]", R"({"event":{"end":{"exited":true,"exitCode":256}}})", R"({"event":1})",
                           R"({"event":{"start":{}}})", R"({"event":{"start":{"pid":-1}}})", R"({"event":{"start":{"pid":"x"}}})",
                           R"({"event":{"data":{"stdout":"*"}}})", R"({"event":{"data":{"stdout":"ab"}}})",
                           R"({"event":{"data":{"stdout":7}}})", R"({"event":{"end":{"exitCode":"no"}}})", "\xff"}) {
    EXPECT_FALSE(parse_event(json)) << json;
  }
}

TEST(Events, ComplaintsHaveACodeOrANumber) {
  EXPECT_EQ(parse_complaint(R"({"code":"not_found","message":"m"})")->code, Code::kNotFound);
  EXPECT_EQ(parse_complaint(R"({"code":404,"message":"m"})")->code, Code::kUnknown) << "the HTTP status says it";
  EXPECT_FALSE(parse_complaint("<html>"));
  EXPECT_EQ(parse_last(R"({"error":{"code":"deadline_exceeded"}})").value()->code, Code::kDeadlineExceeded);
  EXPECT_FALSE(parse_last("{}").value());
  EXPECT_FALSE(parse_last("x"));
}

TEST(Entries, AreWhatTheySay) {
  const auto entry = [](const std::string& fields) { return parse_entry(R"({"entry":{)" + fields + "}}"); };
  const auto file = entry(
      R"("name":"a","type":"FILE_TYPE_FILE","path":"/w/a","size":"12","mode":420,"modifiedTime":"2026-11-21T10:00:00.5Z","permissions":"-rw-r--r--")");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->info.type, FileType::kFile);
  EXPECT_EQ(file->info.size, 12U);
  EXPECT_EQ(file->info.mode, 0644U);
  EXPECT_EQ(std::chrono::duration_cast<std::chrono::milliseconds>(file->info.modified.time_since_epoch()).count(), 1795255200500);
  EXPECT_EQ(entry(R"("name":"l","type":"FILE_TYPE_FILE","symlinkTarget":"/x")")->info.type, FileType::kSymlink)
      << "the type is that of the target";
  EXPECT_EQ(entry(R"("name":"broken","permissions":"Lrwxrwxrwx")")->info.type, FileType::kSymlink);
  EXPECT_EQ(entry(R"("name":"fifo","permissions":"prw-r--r--")")->info.type, FileType::kOther);
  EXPECT_FALSE(entry(R"("name":"a/b")"));
  EXPECT_FALSE(entry(R"("name":"a","size":"-1")"));
  EXPECT_FALSE(parse_entry("{}"));
  EXPECT_TRUE(parse_entries("{}")->empty());
  EXPECT_FALSE(parse_entries(R"({"entries":[1]})"));
}

}  // namespace
}  // namespace belljar::remote::e2b
