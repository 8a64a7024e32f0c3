#include "egress/fake_addresses.h"

#include "policy/defaults.h"

namespace belljar::egress {
namespace {

constexpr std::uint32_t kFirst = policy::kFakeAddresses + 1;
constexpr std::uint32_t kRange = 0xFFFF0000;

}  // namespace

std::optional<std::uint32_t> FakeAddresses::address_of(const std::string& name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return kFirst + found->second;
  if (names_.size() >= kMostNames) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(&numbers_.emplace(name, number).first->first);
  return kFirst + number;
}

const std::string* FakeAddresses::find_name(std::uint32_t address) const noexcept {
  return address >= kFirst && address - kFirst < names_.size() ? names_[address - kFirst] : nullptr;
}

bool FakeAddresses::is_fake(std::uint32_t address) noexcept { return (address & kRange) == policy::kFakeAddresses; }

}  // namespace belljar::egress
