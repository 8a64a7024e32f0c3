#include "broker/former_contents.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace belljar::broker {

void FormerContents::remember(const std::string& path, std::string content) {
  const std::scoped_lock lock(mutex_);
  if (content.empty() || bytes_ + content.size() > kMostBytes) return;
  if (contents_.size() == kMostNames && !contents_.contains(path)) return;
  std::vector<std::string>& list = contents_[path];
  if (std::ranges::find(list, content) != list.end()) return;
  if (list.size() == kMostContents) {
    bytes_ -= list[1].size();
    list.erase(list.begin() + 1);
  }
  bytes_ += content.size();
  list.push_back(std::move(content));
}

std::vector<std::string> FormerContents::of(const std::string& path) const {
  const std::scoped_lock lock(mutex_);
  const auto found = contents_.find(path);
  return found == contents_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace belljar::broker
