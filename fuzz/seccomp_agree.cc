// For any spec and any call the filter does what the model says. The input is a spec and a row of calls; half of the calls take
// their arguments from the values that rules compare with, or nothing but chance would ever meet them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernel/seccomp.h"
#include "kernel/seccomp_table.h"

namespace {

using namespace belljar::kernel;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  template <class T>
  T take() {
    T value{};
    const std::size_t size = left_ < sizeof value ? left_ : sizeof value;
    std::memcpy(&value, data_, size);
    data_ += size;
    left_ -= size;
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

SeccompSpec take_spec(Input& input) {
  const auto bits = input.take<std::uint8_t>();
  return {.unix_sockets = static_cast<UnixSockets>(bits & 3U),
          .allow_inet = (bits & 4U) != 0,
          .allow_netlink_route = (bits & 8U) != 0,
          .allow_ipc = (bits & 16U) != 0,
          .own_pid_namespace = (bits & 32U) != 0,
          .own_mounts = (input.take<std::uint8_t>() & 1U) != 0,
          .allow_nested_userns = (bits & 64U) != 0,
          .deny_setid_bits = (bits & 128U) != 0};
}

std::uint64_t take_argument(Input& input, const SeccompSpec& spec, Group group, unsigned index) {
  const auto choice = input.take<std::uint8_t>();
  if (choice < 128) return input.take<std::uint64_t>();
  const Rule rule = rule_for(spec, group);
  std::vector<Condition> known;
  for (const Clause& clause : rule.list()) {
    for (std::size_t c = 0; c < clause.count; ++c) {
      if (clause.conditions[c].arg == index) known.push_back(clause.conditions[c]);
    }
  }
  if (known.empty()) return choice & 3U;
  const Condition& condition = known[choice % known.size()];
  const auto noise = input.take<std::uint64_t>();
  const std::uint64_t low = condition.value | (noise & ~condition.mask & 0xffffffffU);
  return low + (noise >> 62U) - 1U + ((noise >> 32U) << 32U);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const SeccompSpec spec = take_spec(input);
  const std::vector<sock_filter> filter = build_filter(spec);
  if (filter.size() > BPF_MAXINSNS) std::abort();
  while (!input.empty()) {
    seccomp_data call{};
    const auto shape = input.take<std::uint8_t>();
    call.arch = shape < 8 ? input.take<std::uint32_t>() : kNativeArch;
    call.nr = static_cast<int>(shape % 8 == 0 ? input.take<std::uint32_t>() : input.take<std::uint16_t>() % 600U);
    const Group group = group_of(static_cast<std::uint32_t>(call.nr));
    for (unsigned i = 0; i < 6; ++i) call.args[i] = take_argument(input, spec, group, i);
    const Verdict model = judge(spec, call);
    if (model != evaluate(filter, call) || model.kind == Verdict::Kind::kBadProgram) std::abort();
  }
  return 0;
}
