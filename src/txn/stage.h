// Prepares a commit: everything that will be put into the workspace is made first, in a stage directory on
// the same mount, so that one rename for each name remains.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "txn/base.h"
#include "txn/files.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {

// What identifies a file. It is compared again after each rename, when nobody else can change which file the
// name means.
struct Identity {
  std::uint32_t type = 0;  // S_IFMT part of the mode
  std::uint64_t ino = 0, size = 0;
  std::int64_t mtime = 0;
  bool operator==(const Identity&) const = default;
};
Identity identity_of(const struct stat& status);  // of a directory: type and inode only

struct Op {
  enum class Kind : std::uint8_t { kPut, kRemove, kMeta };
  Kind kind = Kind::kPut;
  std::string path;
  std::uint64_t number = 0;              // "n5" is the new thing in the stage; "o5" the old one, if it could not be exchanged
  LayerId layer = 0;                     // kPut: the new thing lies in that layer under `path`, and not in the stage; 0: it does
  std::optional<Identity> before;        // on the host; none: nothing may be there
  std::map<std::string, Identity> tree;  // of a directory that is removed: all that it may hold, relative to it
  Identity staged;                       // kPut
  std::map<std::string, Identity> staged_tree;                    // of a directory that is put: what it holds
  std::uint32_t old_mode = 0, mode = 0;                           // kMeta, and of directories that move
  std::map<std::string, std::string> old_attributes, attributes;  // kMeta
  bool operator==(const Op&) const = default;
};

// The result of merging a file or directory that the host changed too. The owner is the host's: no command
// can give a file away.
struct Merged {
  std::optional<std::string> text;  // of both; none: the layer's bytes
  std::uint32_t mode = 0;           // permission bits
  std::map<std::string, std::string> attributes;
};

// One change that is to be applied.
struct PlannedChange {
  Delta delta;
  bool content = true;  // false: mode and attributes only
  std::optional<Merged> merged;
};

class Stager {
 public:
  // `may_link`: files of the layer `own` may be handed over as they are, because the transaction ends with this commit.
  Stager(const Store& store, int stage, std::optional<LayerId> may_link) : store_(store), stage_(stage), may_link_(may_link) {}

  // A file that stays on the host with the host's bytes: other names that it has in the layer become hard
  // links to it. All of these come before add().
  void keep(const Delta& delta);
  // In the order of walk(): parents first.
  Result<void> add(const PlannedChange& chosen);
  // Instead of add() for each of them: a new name that stays where it is in `layer` until its step (handover.h).
  void add_as_is(std::span<const PlannedChange> tree, LayerId layer);
  // It lies below what was added last and goes as a whole.
  bool is_below_last(const std::string& path) const;
  Result<std::vector<Op>> finish_all();

 private:
  std::string staged_path(const std::string& path) const;
  // The fields that all kinds have: name, number, and the identity of what the host has now.
  Op next_op(Op::Kind kind, const Delta& delta) const;
  Result<void> put(const PlannedChange& chosen);
  Result<void> remove(const Delta& delta);
  Result<void> meta(const PlannedChange& chosen);
  Result<Identity> make(const PlannedChange& chosen, int parent, const std::string& name);
  Result<void> make_file(const Delta& delta, int parent, const std::string& name);
  bool link_to_host(const Delta& delta, int parent, const std::string& name) const;
  Result<void> make_directory(const Delta& delta, int parent, const std::string& name);
  Result<bool> hand_over(const Delta& delta, int from, const std::string& source, int parent, const std::string& name) const;
  Result<void> make_merged(const PlannedChange& chosen, int parent, const std::string& name);

  const Store& store_;
  int stage_;
  std::optional<LayerId> may_link_;
  std::vector<Op> ops_;
  LastFolder in_stage_, in_layers_;
  // A new directory gets what filling it would change when all of it is there.
  struct Finish {
    std::string path;  // below the stage
    mode_t mode;
    struct timespec accessed, modified;
  };
  Result<void> finish(const Finish& directory) const;
  std::vector<Finish> to_finish_;
  struct HostFile {
    std::string path;
    ino_t ino;  // on the host
  };
  std::map<std::pair<dev_t, ino_t>, HostFile> kept_;       // by the layer's inode
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;  // of layers, with more than one name -> path below the stage
};

}  // namespace belljar::txn
