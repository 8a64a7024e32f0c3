// A service that models speak through, for tests: says to each request what it was given, in order, and keeps what was asked.
//
//   ModelServer server({{.status = 429, .headers = {"retry-after: 0"}}, {.pieces = anthropic_stream("done")}});
//   ask(server.url());
//   EXPECT_EQ(server.requests().size(), 2U);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::test {

struct ModelAnswer {
  int status = 200;
  std::vector<std::string> headers;
  std::vector<std::string> pieces;         // each a chunk of its own
  std::string type = "text/event-stream";  // of status 200
  bool cut = false;                        // the connection ends before the last chunk does
  bool hang = false;                       // nothing more comes, and the connection stays
};

// Asked more often than there are answers it gives the last one again.
class ModelServer {
 public:
  explicit ModelServer(std::vector<ModelAnswer> answers);
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  std::string url() const;
  std::vector<std::string> requests() const;  // head and body

 private:
  void serve();
  bool read_request(int fd, std::string& text) const;
  bool answer(int fd, const ModelAnswer& what) const;

  const std::vector<ModelAnswer> answers_;
  std::atomic<bool> stop_{false};
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::vector<UniqueFd> held_;  // of the thread
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;  // guarded by mutex_
  std::thread thread_;                 // last
};

struct StreamCall {
  std::string id, name, arguments;
};

// Whole streams as the three wires have them: a piece is an event. Arguments come in two halves.
std::vector<std::string> anthropic_stream(const std::string& text, const std::vector<StreamCall>& calls = {});
std::vector<std::string> chat_stream(const std::string& text, const std::vector<StreamCall>& calls = {});
std::vector<std::string> responses_stream(const std::string& text, const std::vector<StreamCall>& calls = {});

// The same bytes, one a piece.
std::vector<std::string> byte_by_byte(const std::vector<std::string>& pieces);

}  // namespace belljar::test
