#include "broker/bound_names.h"

#include <string_view>
#include <utility>

#include "base/paths.h"

namespace belljar::broker {

void BoundNames::note(ino_t socket, std::string path) {
  const std::scoped_lock lock(mutex_);
  if (paths_.insert_or_assign(socket, std::move(path)).second) order_.push_back(socket);
  if (order_.size() <= kMost) return;
  paths_.erase(order_.front());
  order_.pop_front();
}

std::optional<std::string> BoundNames::find(ino_t socket, std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = paths_.find(socket);
  if (found == paths_.end()) return std::nullopt;
  if (file_name(found->second) != name) return std::nullopt;
  return found->second;
}

bool BoundNames::empty() const {
  const std::scoped_lock lock(mutex_);
  return paths_.empty();
}

}  // namespace belljar::broker
