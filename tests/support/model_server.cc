#include "support/model_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "support/loopback.h"

namespace belljar::test {
namespace {

bool send_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out + "\"";
}

std::string named(const std::string& name, const std::string& data) { return "event: " + name + "\ndata: " + data + "\n\n"; }
std::string unnamed(const std::string& data) { return "data: " + data + "\n\n"; }

std::pair<std::string, std::string> halves(const std::string& text) {
  return {text.substr(0, text.size() / 2), text.substr(text.size() / 2)};
}

}  // namespace

ModelServer::ModelServer(std::vector<ModelAnswer> answers) : answers_(std::move(answers)) {
  listener_ = listen_loopback(port_);
  EXPECT_TRUE(listener_.valid());
  thread_ = std::thread([this] { serve(); });
}

ModelServer::~ModelServer() {
  stop_ = true;
  thread_.join();
}

std::string ModelServer::url() const { return format("http://127.0.0.1:{}", port_); }

std::vector<std::string> ModelServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void ModelServer::serve() {
  while (!stop_) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 20) <= 0) continue;
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int on = 1;
    (void)::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::string request;
    if (!read_request(client.get(), request)) continue;
    std::size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = requests_.size();
      requests_.push_back(std::move(request));
    }
    const ModelAnswer& what = answers_[number < answers_.size() ? number : answers_.size() - 1];
    if (answer(client.get(), what)) held_.push_back(std::move(client));
  }
}

bool ModelServer::read_request(int fd, std::string& text) const {
  char buffer[8192];
  while (!stop_) {
    const std::size_t end = text.find("\r\n\r\n");
    const std::size_t length = text.find("Content-Length: ");
    if (end != std::string::npos && length != std::string::npos && text.size() >= end + 4 + std::stoul(text.substr(length + 16)))
      return true;
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, 20) <= 0) continue;
    const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return false;
}

// True: the connection is to stay.
bool ModelServer::answer(int fd, const ModelAnswer& what) const {
  std::string head = format("HTTP/1.1 {} x\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n", what.status,
                            what.status == 200 ? what.type : "application/json");
  for (const std::string& line : what.headers) head += line + "\r\n";
  if (!send_all(fd, head + "\r\n")) return false;
  for (const std::string& piece : what.pieces) {
    if (!send_all(fd, format("{:x}\r\n{}\r\n", piece.size(), piece))) return false;
  }
  if (what.hang) return true;
  if (!what.cut) (void)send_all(fd, "0\r\n\r\n");
  return false;
}

std::vector<std::string> anthropic_stream(const std::string& text, const std::vector<StreamCall>& calls) {
  std::vector<std::string> events{
      named(
          "message_start",
          R"({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":100,"cache_read_input_tokens":20,"output_tokens":1}}})"),
      named("ping", R"({"type":"ping"})")};
  int index = 0;
  const auto event = [&](const std::string& type, const std::string& rest) {
    events.push_back(named(type, format(R"({{"type":"{}","index":{}{}}})", type, index, rest)));
  };
  if (!text.empty()) {
    event("content_block_start", R"(,"content_block":{"type":"text","text":""})");
    event("content_block_delta", R"(,"delta":{"type":"text_delta","text":)" + json_string(text) + "}");
    event("content_block_stop", "");
    ++index;
  }
  for (const StreamCall& call : calls) {
    const auto [first, second] = halves(call.arguments);
    event("content_block_start",
          format(R"(,"content_block":{{"type":"tool_use","id":"{}","name":"{}","input":{{}}}})", call.id, call.name));
    event("content_block_delta", R"(,"delta":{"type":"input_json_delta","partial_json":)" + json_string(first) + "}");
    event("content_block_delta", R"(,"delta":{"type":"input_json_delta","partial_json":)" + json_string(second) + "}");
    event("content_block_stop", "");
    ++index;
  }
  events.push_back(named(
      "message_delta",
      format(R"({{"type":"message_delta","delta":{{"stop_reason":"{}","stop_sequence":null}},"usage":{{"output_tokens":30}}}})",
             calls.empty() ? "end_turn" : "tool_use")));
  events.push_back(named("message_stop", R"({"type":"message_stop"})"));
  return events;
}

std::vector<std::string> chat_stream(const std::string& text, const std::vector<StreamCall>& calls) {
  std::vector<std::string> events;
  const auto delta = [&](const std::string& what, const std::string& finish = "null") {
    events.push_back(
        unnamed(format(R"({{"id":"c1","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{},"finish_reason":{}}}]}})",
                       what, finish)));
  };
  delta(R"({"role":"assistant","content":""})");
  if (!text.empty()) delta("{\"content\":" + json_string(text) + "}");
  int index = 0;
  for (const StreamCall& call : calls) {
    const auto [first, second] = halves(call.arguments);
    delta(format(R"({{"tool_calls":[{{"index":{},"id":"{}","type":"function","function":{{"name":"{}","arguments":{}}}}}]}})",
                 index, call.id, call.name, json_string(first)));
    delta(format(R"({{"tool_calls":[{{"index":{},"function":{{"arguments":{}}}}}]}})", index, json_string(second)));
    ++index;
  }
  delta("{}", calls.empty() ? "\"stop\"" : "\"tool_calls\"");
  events.push_back(unnamed(R"({"id":"c1","choices":[],"usage":{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150}})"));
  events.push_back(unnamed("[DONE]"));
  return events;
}

std::vector<std::string> responses_stream(const std::string& text, const std::vector<StreamCall>& calls) {
  std::vector<std::string> events{
      named("response.created", R"({"type":"response.created","response":{"id":"r1","status":"in_progress"}})")};
  int index = 0;
  const auto event = [&](const std::string& type, const std::string& rest) {
    events.push_back(named(type, format(R"({{"type":"{}","output_index":{}{}}})", type, index, rest)));
  };
  if (!text.empty()) {
    event("response.output_item.added", R"(,"item":{"type":"message","role":"assistant","content":[]})");
    event("response.output_text.delta", R"(,"content_index":0,"delta":)" + json_string(text));
    event("response.output_item.done", R"(,"item":{"type":"message","role":"assistant"})");
    ++index;
  }
  for (const StreamCall& call : calls) {
    const auto [first, second] = halves(call.arguments);
    event("response.output_item.added",
          format(R"(,"item":{{"type":"function_call","call_id":"{}","name":"{}","arguments":""}})", call.id, call.name));
    event("response.function_call_arguments.delta", R"(,"delta":)" + json_string(first));
    event("response.function_call_arguments.delta", R"(,"delta":)" + json_string(second));
    event("response.output_item.done", format(R"(,"item":{{"type":"function_call","call_id":"{}","name":"{}","arguments":{}}})",
                                              call.id, call.name, json_string(call.arguments)));
    ++index;
  }
  events.push_back(named(
      "response.completed",
      R"({"type":"response.completed","response":{"id":"r1","status":"completed","usage":{"input_tokens":120,"output_tokens":30}}})"));
  return events;
}

std::vector<std::string> byte_by_byte(const std::vector<std::string>& pieces) {
  std::vector<std::string> bytes;
  for (const std::string& piece : pieces) {
    for (const char c : piece) bytes.emplace_back(1, c);
  }
  return bytes;
}

}  // namespace belljar::test
