#include "egress/fake_addresses.h"

namespace belljar::egress {
namespace {

constexpr std::uint32_t kRange = 0xFFFF0000;

}  // namespace

std::optional<std::uint32_t> FakeAddresses::address_of(const std::string& name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return range_ + 1 + found->second;
  if (names_.size() >= kMostNames) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(&numbers_.emplace(name, number).first->first);
  return range_ + 1 + number;
}

const std::string* FakeAddresses::find_name(std::uint32_t address) const noexcept {
  const std::uint32_t first = range_ + 1;
  return address >= first && address - first < names_.size() ? names_[address - first] : nullptr;
}

bool FakeAddresses::is_fake(std::uint32_t address) const noexcept { return (address & kRange) == range_; }

}  // namespace belljar::egress
