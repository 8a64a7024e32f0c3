// A real container engine for a test: Debian's dockerd, or Podman's service, with a data root, a socket and namespaces of its own,
// so that nothing of it outlives the test, whatever happens to the test. Only root can have one.
//
//   std::unique_ptr<test::Engine> engine;
//   BELLJAR_NEEDS(start_engine(engine));
//   config.container = {.engine = engine->address(), .image = engine->image()};
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

enum class EngineKind { kDocker, kPodman };

class Engine {
 public:
  // Starts it and imports an image made of busybox. Throws std::runtime_error with its log.
  explicit Engine(EngineKind kind = EngineKind::kDocker);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::string address() const { return "unix://" + socket(); }
  std::string socket() const { return directory_ / "sock"; }
  static std::string image() { return "localhost/belljar-test:1"; }

  // The engine's own client, for what a test looks at.
  Outcome client(std::vector<std::string> words) const;
  // An image of the files in an archive.
  Outcome import(const std::string& tar, const std::string& name) const;
  std::vector<std::string> containers() const;  // ids, running or not

  void stop(int signal = 15);
  void start();

 private:
  std::vector<std::string> dockerd() const;
  std::vector<std::string> podman() const;  // and its global options
  void import_image();
  void end();
  EngineKind kind_;
  TempDir directory_;
  std::unique_ptr<Running> daemon_;
};

// Why there can be none here, or nothing: then it runs.
std::string start_engine(std::unique_ptr<Engine>& engine, EngineKind kind = EngineKind::kDocker);

}  // namespace belljar::test
