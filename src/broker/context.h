// What the handlers of one sandbox's calls share.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "broker/bound_names.h"
#include "broker/broker.h"
#include "broker/caller.h"
#include "broker/directories.h"
#include "broker/former_contents.h"
#include "broker/listed_sockets.h"
#include "broker/mount_table.h"
#include "broker/notification.h"
#include "broker/own_sockets.h"
#include "broker/peers.h"
#include "broker/staged_files.h"
#include "broker/start_paths.h"
#include "broker/umasks.h"
#include "broker/violation_log.h"

namespace belljar::broker {

struct Context {
  UniqueFd listener;
  UniqueFd timer;  // of the event loop; see Receivers::tick
  BrokerOptions options;
  std::uint64_t host_netns = 0;  // SO_NETNS_COOKIE of our own network namespace; 0 unknown
  OwnSockets own;
  ListedSockets listed;
  BoundNames bound;
  Peers peers;
  std::mutex pairs_mutex;
  const UniqueFd pairs;  // Inner::pairs; one request and its answer at a time, guarded by pairs_mutex
  ViolationLog violations;
  // The kernel does not tell what a socket is bound to (SIOCUNIXFILE refused, no unix_diag): no own socket can be told apart.
  std::atomic<bool> cannot_note = false;

  // Files.
  std::atomic<int> root = -1;  // the root of all callers, where they have one; kept in root_file
  Directories directories;     // shared by every act on a name, exclusive while a directory changes its path
  StartPaths starts;
  MountTable mounts;
  Umasks umasks;
  StagedFiles staged;
  FormerContents former;

  // The first one is kept; returns what is kept.
  int keep_root(UniqueFd first) {
    const std::scoped_lock lock(root_mutex);
    if (!root_file.valid()) root_file = std::move(first);
    root = root_file.get();
    return root;
  }
  std::mutex root_mutex;
  UniqueFd root_file;  // guarded by root_mutex
  UniqueFd upper;      // of options.overlay

  Context(UniqueFd fd, BrokerOptions given, Inner inner)
      : listener(std::move(fd)),
        options(std::move(given)),
        own(options.max_own_sockets, options.began, options.uid == static_cast<uid_t>(-1) ? ::geteuid() : options.uid),
        listed(options.listed),
        peers(std::move(inner.diag)),
        pairs(std::move(inner.pairs)),
        violations(options.max_violations, options.ignored) {}

  Origin origin_of(const std::string& rule) const {
    return options.origin_of ? options.origin_of(rule) : Origin{"built-in", "", 0};
  }

  // Records a refusal by network.allow_unix_sockets and returns `-errnum`.
  int refuse(const Caller& caller, std::string operation, std::string target, int errnum, std::string allowed) {
    return refuse(caller, std::move(operation), std::move(target), errnum, std::move(allowed), "network.allow_unix_sockets");
  }
  // The same for any policy key. All of the caller is read here, so before it is answered.
  int refuse(const Caller& caller, std::string operation, std::string target, int errnum, std::string allowed, std::string rule) {
    Origin origin = origin_of(rule);
    return refuse(caller, std::move(operation), std::move(target), errnum, std::move(allowed), std::move(rule), std::move(origin));
  }
  // The same for a rule whose origin is known.
  int refuse(const Caller& caller, std::string operation, std::string target, int errnum, std::string allowed, std::string rule,
             Origin origin) {
    Violation violation;
    violation.pid = caller.pid_inside();
    violation.program = caller.program();
    violation.operation = std::move(operation);
    violation.target = std::move(target);
    violation.rule = std::move(rule);
    violation.origin = std::move(origin);
    violation.errnum = errnum;
    violation.allowed = std::move(allowed);
    violations.add(std::move(violation));
    return -errnum;
  }
};

}  // namespace belljar::broker
