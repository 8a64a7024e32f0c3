#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "agent/conversation_lock.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

const std::vector<ChatMessage> kTalk{
    {.text = "do it\n\"now\""},
    {.text = "a summary", .made = true},
    {.role = ChatRole::kAssistant, .text = "ok", .calls = {{"1", "bash", "{\"command\""}, {"2", "list", "{}"}}},
    {.role = ChatRole::kTool, .text = "no", .call_id = "1", .tool = "bash", .failed = true},
    {.role = ChatRole::kTool, .text = "a", .call_id = "2", .tool = "list"}};

TEST(Conversation, WhatIsKeptComesBack) {
  const TempDir place;
  const std::string path = place / "talk.json";
  EXPECT_EQ(load_conversation(path).error().code(), Code::kNotFound);
  for (int i = 0; i < 2; ++i) {
    const auto saved = save_conversation(path, kTalk);
    ASSERT_TRUE(saved) << saved.error().line();
    const auto back = load_conversation(path);
    ASSERT_TRUE(back) << back.error().line();
    EXPECT_EQ(*back, kTalk);
  }
  struct stat about{};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_FALSE(save_conversation(place / "absent/talk.json", kTalk));
}

TEST(Conversation, CallsWithoutResultsAreClosed) {
  const TempDir place;
  const std::string path = place / "talk.json";
  std::vector<ChatMessage> torn(kTalk.begin(), kTalk.begin() + 4);
  torn.push_back({.role = ChatRole::kTool, .text = "of no call", .call_id = "9", .tool = "x"});
  ASSERT_TRUE(save_conversation(path, torn));
  const auto back = load_conversation(path);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 5U);
  EXPECT_EQ(back->at(4).call_id, "2");
  EXPECT_TRUE(back->at(4).failed);
}

TEST(Conversation, WhatIsNoneOrNotOursIsRefused) {
  const TempDir place;
  for (const char* text :
       {"", "{", "[]", "{}", R"({"belljar_conversation":2,"messages":[]})", R"({"belljar_conversation":1,"messages":7})",
        R"({"belljar_conversation":1,"messages":[7]})", R"({"belljar_conversation":1,"messages":[{"role":"system","text":"x"}]})",
        R"({"belljar_conversation":1,"messages":[{"role":"user"}]})"})
    EXPECT_EQ(load_conversation(place.write("bad.json", text, 0600)).error().code(), Code::kInvalidArgument) << text;
  constexpr const char* kFine = R"({"belljar_conversation":1,"messages":[{"role":"user","text":"x"}]})";
  const std::string path = place.write("open.json", kFine);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(load_conversation(path).error().code(), Code::kPermissionDenied) << "others could put words into the user's mouth";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(load_conversation(path));
  ASSERT_EQ(::symlink(path.c_str(), (place / "link").c_str()), 0);
  EXPECT_FALSE(load_conversation(place / "link"));
  EXPECT_FALSE(load_conversation(place.path()));
}

TEST(Conversation, OneRunAtATimeGoesOnWithIt) {
  const TempDir place;
  const std::string path = place / "talk.json", lock = path + ".lock";
  {
    const auto held = agent::ConversationLock::acquire(path);
    ASSERT_TRUE(held) << held.error().line();
    const auto refused = agent::ConversationLock::acquire(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
    EXPECT_TRUE(refused.error().line().find("another `belljar agent` is at work on it") != std::string::npos);
    EXPECT_TRUE(agent::ConversationLock::acquire(place / "other.json")) << "the twin";
    EXPECT_EQ(::access(lock.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(lock.c_str(), F_OK), 0) << "nothing is left behind";
  place.write("talk.json.lock", "");
  EXPECT_TRUE(agent::ConversationLock::acquire(path)) << "left by a kill";
  place.write("talk.json.lock", "of somebody else");
  EXPECT_FALSE(agent::ConversationLock::acquire(path));
  EXPECT_EQ(::access(lock.c_str(), F_OK), 0);
  EXPECT_FALSE(agent::ConversationLock::acquire(place / "absent/talk.json"));
}

}  // namespace
}  // namespace belljar::test
