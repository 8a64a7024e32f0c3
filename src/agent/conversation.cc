// A conversation as a file, to go on with later.
//
// What it holds counts as the user's words and as results that were shown, so a file that somebody else can
// write is refused. It is replaced whole, by rename after fsync(2): a run that is killed leaves the last
// complete state. A run that ended in the middle of several calls leaves some without a result, which
// services refuse; closed() gives each of those a result that says so.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/json.h"
#include "base/format.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {
namespace {

using agent::Json;

constexpr off_t kMostBytesKept = off_t{256} << 20;

Json to_json(const ChatMessage& message) {
  static const std::map<ChatRole, const char*> kNames{
      {ChatRole::kUser, "user"}, {ChatRole::kAssistant, "assistant"}, {ChatRole::kTool, "tool"}};
  Json json{{"role", kNames.at(message.role)}, {"text", message.text}};
  if (message.made) json["made"] = true;
  for (const ToolUse& call : message.calls)
    json["calls"].push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  if (message.role == ChatRole::kTool) {
    json["call_id"] = message.call_id;
    json["tool"] = message.tool;
    json["failed"] = message.failed;
  }
  return json;
}

Result<ChatMessage> from_json(const Json& json) {
  static const std::map<std::string, ChatRole> kRoles{
      {"user", ChatRole::kUser}, {"assistant", ChatRole::kAssistant}, {"tool", ChatRole::kTool}};
  const auto role = kRoles.find(agent::text_of(json, "role"));
  if (role == kRoles.end() || !agent::member(json, "text").is_string())
    return Error(Code::kInvalidArgument, "a message has no role or no text");
  ChatMessage message{.role = role->second,
                      .text = agent::text_of(json, "text"),
                      .made = agent::member(json, "made") == Json(true),
                      .call_id = agent::text_of(json, "call_id"),
                      .tool = agent::text_of(json, "tool"),
                      .failed = agent::member(json, "failed") == Json(true)};
  for (const Json& call : agent::member(json, "calls"))
    message.calls.push_back({agent::text_of(call, "id"), agent::text_of(call, "name"), agent::text_of(call, "arguments")});
  return message;
}

// A run that was killed leaves calls without results; services refuse such a conversation.
std::vector<ChatMessage> closed(std::vector<ChatMessage> messages) {
  std::vector<ChatMessage> whole;
  std::vector<ToolUse> open;
  const auto close = [&] {
    for (const ToolUse& call : open)
      whole.push_back({.role = ChatRole::kTool,
                       .text = "the run ended before there was a result",
                       .call_id = call.id,
                       .tool = call.name,
                       .failed = true});
    open.clear();
  };
  for (ChatMessage& message : messages) {
    if (message.role == ChatRole::kTool) {
      if (std::erase_if(open, [&](const ToolUse& call) { return call.id == message.call_id; }) == 0) continue;
    } else {
      close();
      open = message.calls;
    }
    whole.push_back(std::move(message));
  }
  close();
  return whole;
}

Result<std::string> read_whole(const std::string& path) {
  const auto failed = [&](Code code) { return Error(code, format("cannot read the conversation {}", belljar::quoted(path))); };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.valid()) return failed(errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied).sys(errno, "open");
  struct stat about{};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return failed(Code::kInvalidArgument).reason("it is no regular file");
  if (about.st_uid != ::geteuid() || (about.st_mode & 022) != 0)
    return failed(Code::kPermissionDenied)
        .reason("somebody else may write it, and what it says counts as your words")
        .next("chmod go-w, chown");
  if (about.st_size > kMostBytesKept) return failed(Code::kResourceExhausted).reason("it is larger than 256 MiB");
  auto text = read_at_most(file.get(), static_cast<std::size_t>(about.st_size));
  if (!text) return failed(Code::kUnavailable).sys(errno, "read");
  return *std::move(text);
}

}  // namespace

Result<std::vector<ChatMessage>> load_conversation(const std::string& path) {
  const std::string text = BELLJAR_TRY(read_whole(path));
  const auto json = agent::parse_json(text);
  const auto bad = [&](std::string why) {
    return Error(Code::kInvalidArgument, format("cannot read the conversation {}", belljar::quoted(path))).reason(std::move(why));
  };
  if (!json || agent::count_of(*json, "belljar_conversation") != 1 || !agent::member(*json, "messages").is_array())
    return bad("it is no conversation of `belljar agent`");
  std::vector<ChatMessage> messages;
  for (const Json& each : agent::member(*json, "messages")) {
    auto message = from_json(each);
    if (!message) return bad(message.error().what());
    messages.push_back(std::move(*message));
  }
  return closed(std::move(messages));
}

Result<void> save_conversation(const std::string& path, const std::vector<ChatMessage>& messages) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) list.push_back(to_json(message));
  const std::string text = agent::dump(Json{{"belljar_conversation", 1}, {"messages", std::move(list)}}) + "\n";
  const std::string temporary = format("{}.{}.new", path, ::getpid());
  const auto failed = [&](const char* call) {
    const int number = errno;
    (void)::unlink(temporary.c_str());
    return Error(Code::kPermissionDenied, format("cannot write the conversation {}", belljar::quoted(path))).sys(number, call);
  };
  (void)::unlink(temporary.c_str());
  UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return failed("open");
  if (!write_all(file.get(), text)) return failed("write");
  if (::fsync(file.get()) != 0) return failed("fsync");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename");
  return {};
}

}  // namespace belljar
