// A real container engine for a test: Debian's dockerd with a data root, a socket and namespaces of its own, so that nothing of it
// outlives the test, whatever happens to the test. Only root can have one.
//
//   BELLJAR_NEEDS(container_engine());
//   test::Engine engine;
//   config.container = {.engine = engine.address(), .image = engine.image()};
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

class Engine {
 public:
  // Starts it and imports an image made of busybox. `options`: further ones of dockerd. Throws std::runtime_error with its log.
  explicit Engine(std::vector<std::string> options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::string address() const { return "unix://" + socket(); }
  std::string socket() const { return directory_ / "sock"; }
  static std::string image() { return "belljar-test:1"; }

  // The engine's own client, for what a test looks at.
  Outcome client(std::vector<std::string> words) const;
  std::vector<std::string> containers() const;  // ids, running or not

  void stop(int signal = 15);
  void start();

 private:
  void import_image();
  TempDir directory_;
  std::vector<std::string> options_;
  std::unique_ptr<Running> daemon_;
};

// Why there can be none here, or nothing.
std::string container_engine();

}  // namespace belljar::test
