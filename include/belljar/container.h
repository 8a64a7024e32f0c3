// What the container backend (SandboxConfig::backend = "container") needs to know besides the policy: which engine, which image.
//
//   SandboxConfig config;
//   config.backend = "container";
//   config.container.image = "node:20-slim";
//   config.policy.limits.memory = 512_MiB;
//   auto sandbox = BELLJAR_TRY(make_sandbox(config));
//
// The engine is spoken to by its API (Docker Engine 1.40 or newer, Podman's compatible service); no client program is needed. The
// policy means what it means everywhere; src/backend/container/README.md says which clause is held by what, and what is refused.
// Values; safe from any thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "belljar/policy.h"

namespace belljar {

// kSession: one container from start() to stop(). kPerCommand: a new one for each command, removed with it; nothing but the
// workspace stays from one to the next.
enum class ContainerMode { kSession, kPerCommand };
enum class ContainerRoot { kReadOnly, kWritable };  // the image's own tree; what is written to it goes with the container

// For a registry that wants one (`image_pull_secrets`). Sent to the engine with a pull, and nowhere else.
struct RegistryLogin {
  std::string user, password;
  std::string server;  // "registry.example.com"; empty: the engine's default
};

// kShared: an engine on another machine sees the same directories at the same paths (a shared volume); otherwise one that is not on
// this machine is refused, because it would show the command a directory of its own.
enum class EngineFiles { kOfThisMachine, kShared };
enum class PlainTcp { kLoopback, kAnywhere };  // where TCP without TLS may go

struct ContainerOptions {
  // "unix:///run/docker.sock", or the path alone; "tcp://host:2376", with TLS where DOCKER_TLS_VERIFY is set (ca.pem, cert.pem and
  // key.pem in DOCKER_CERT_PATH, else ~/.docker). Empty: $DOCKER_HOST; else the first that is there of
  // $XDG_RUNTIME_DIR/docker.sock, /var/run/docker.sock, $XDG_RUNTIME_DIR/podman/podman.sock, /run/podman/podman.sock.
  std::string engine;
  EngineFiles engine_files = EngineFiles::kOfThisMachine;
  PlainTcp plain_tcp = PlainTcp::kLoopback;
  std::string image = "node:20-slim";
  PullPolicy pull = PullPolicy::kIfNotPresent;
  std::optional<RegistryLogin> login;
  ContainerMode mode = ContainerMode::kSession;
  // "UID[:GID]" of the commands. Empty: the caller's; of root the workspace's owner; with a rootless engine 0, which is the caller
  // there. Uid 0 on an engine that is not rootless needs policy.allow_root_uid.
  std::string user;
  // Where the workspace is seen inside. Empty: at its own path, so that paths in messages and files mean the same on both sides.
  std::string workspace_at;
  ContainerRoot root = ContainerRoot::kReadOnly;
  std::map<std::string, std::string> tmpfs;  // further ones: path -> mount options ("size=64m,mode=1777"); without a size, tmp_size
  std::vector<std::string> capabilities;     // given back of those that are dropped, all of them: "NET_BIND_SERVICE"
  std::string network = "bridge";            // the engine's network for network.mode = "host"; another one is refused without
  std::string runtime;                       // "runsc", "kata"; empty: the engine's default
  std::map<std::string, std::string> labels;
  std::chrono::milliseconds pull_timeout = std::chrono::minutes(10);  // without a word of the engine
};

// SANDBOX_COMMANDS=true of document 001: each command in a container of its own, the project at /workspace.
ContainerOptions sandbox_commands();

}  // namespace belljar
