// Where one spare waits for the run that it is for: a socket in state_dir()/warm, mode 0700, that only the user reaches, with a
// name that tells the kind of run.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "warm/caller.h"
#include "warm/wire.h"

namespace belljar::warm {

// The words, variables and directory of a run. A value.
struct RunWords {
  std::vector<std::string> argv, environment;
  std::string cwd;

  wire::Words parts() const;
  // In this two runs must be equal, byte by byte.
  std::string kind() const;
  std::uint64_t hash(const wire::Inherited& inherited) const;
};

// A run that asks for the spare; or, with ask != kRun, somebody who asks about it.
struct Visitor {
  wire::Ask ask = wire::Ask::kTell;
  std::optional<Caller> caller;  // none: it is gone, or not ours to look at
  RunWords run;
  wire::Inherited inherited;
  std::string proof;
  std::array<UniqueFd, 3> streams;
  UniqueFd connection;

  bool answer(wire::Say say, int value = 0) const noexcept;
  bool has_left() const noexcept;
  // Waits until it says go to an answer of "taken", and takes its streams. False: it does not, and never will.
  bool await_go() noexcept;
};

// A resource; the destructor removes the socket. One thread.
class Door {
 public:
  // Takes a free slot. Errors: kAlreadyExists, there are enough spares of that kind; kFailedPrecondition, there is no place for
  // sockets, or it is not ours alone.
  // `since`: when this process began; whoever ended all spares later meant this one, too.
  static Result<Door> open(const RunWords& words, const wire::Inherited& inherited, std::chrono::system_clock::time_point since);
  Door(Door&& other) noexcept = default;
  Door& operator=(Door&&) = delete;
  ~Door();

  // The next visitor of this user; nullopt: none came within `patience`, or `also` became readable (-1: none), or the socket is
  // gone.
  std::optional<Visitor> next(std::chrono::milliseconds patience, int also);
  // Nobody comes any more; who waits is turned away.
  void close() noexcept;

 private:
  Door() = default;
  std::optional<Visitor> receive(UniqueFd connection) const;

  std::string path_;
  ino_t inode_ = 0;
  UniqueFd listener_, watch_;
};

// No spare of that kind is made for ten minutes: one that was could not tell whether the host is what it was.
void note_cold(const RunWords& words, const wire::Inherited& inherited);
// Whether another spare of that kind may be made.
bool has_room(const RunWords& words, const wire::Inherited& inherited);

// The directory of this user's spares; empty: there can be none.
std::string directory();
void make_directory();

// Asks each spare that is there; with kEnd they end. What each says of itself; empty: it does not answer. Sockets of those that
// were killed are removed.
std::vector<std::string> ask_all(wire::Ask ask);
// For a spare's answer to kTell.
bool tell(const Visitor& visitor, std::string_view text) noexcept;

}  // namespace belljar::warm
