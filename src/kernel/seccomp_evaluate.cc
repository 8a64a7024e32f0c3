// Classic BPF as seccomp(2) runs it: 32-bit words of seccomp_data, forward jumps only, so every program ends.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernel/seccomp.h"

namespace belljar::kernel {
namespace {

constexpr Verdict kBad{Verdict::Kind::kBadProgram, 0};

Verdict from_return(std::uint32_t value) noexcept {
  switch (value & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
      return {Verdict::Kind::kAllow, 0};
    case SECCOMP_RET_ERRNO:
      return {Verdict::Kind::kErrno, static_cast<std::uint16_t>(value & SECCOMP_RET_DATA)};
    case SECCOMP_RET_USER_NOTIF:
      return {Verdict::Kind::kNotify, 0};
    case SECCOMP_RET_KILL_PROCESS:
      return {Verdict::Kind::kKillProcess, 0};
    default:
      return kBad;  // our filters return nothing else
  }
}

bool test(std::uint16_t code, std::uint32_t a, std::uint32_t k) noexcept {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return a == k;
    case BPF_JGT:
      return a > k;
    case BPF_JGE:
      return a >= k;
    default:
      return (a & k) != 0;
  }
}

}  // namespace

Verdict evaluate(std::span<const sock_filter> program, const seccomp_data& data) noexcept {
  std::uint32_t a = 0;
  std::size_t pc = 0;
  while (pc < program.size()) {
    const sock_filter& op = program[pc++];
    switch (op.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (op.k % 4 != 0 || op.k + 4 > sizeof data) return kBad;
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + op.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= op.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += op.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
      case BPF_JMP | BPF_JGT | BPF_K:
      case BPF_JMP | BPF_JGE | BPF_K:
      case BPF_JMP | BPF_JSET | BPF_K:
        pc += test(op.code, a, op.k) ? op.jt : op.jf;
        break;
      case BPF_RET | BPF_K:
        return from_return(op.k);
      default:
        return kBad;
    }
  }
  return kBad;
}

}  // namespace belljar::kernel
