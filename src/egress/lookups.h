// Runs blocking lookups on a few threads and hands the answers back through a descriptor. Answers are cached for their TTL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "egress/resolve.h"

namespace belljar::egress {

// All methods from one thread. The destructor does not wait for lookups under way: their threads end with them.
class Lookups {
 public:
  Lookups(Resolve resolve, std::size_t threads);
  ~Lookups();

  int poll_fd() const noexcept;  // readable when take() has something
  // The cached answer, if there is one; otherwise asks, and take() will return the answer with `id`.
  std::optional<Resolved> ask(const std::string& name, std::uint64_t id);
  std::vector<std::pair<std::uint64_t, Resolved>> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace belljar::egress
