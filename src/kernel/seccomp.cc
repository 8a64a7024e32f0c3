// Compiles the model into classic BPF.
//
// The kernel pays for a filter three times. At install it compiles it (about 0.12 us an instruction on our machine) and then runs
// it dry for each call number of both ABIs, to remember which are allowed whatever their arguments are (about 2.6 ns a step times
// 900 numbers, kernel/seccomp.c: seccomp_cache_prepare). After that those calls cost nothing and only the others run it. So a
// straight list of 80 comparisons would cost more at install than a tree of 150: the shape is a search tree over ranges of numbers,
// balanced by how many real numbers each range holds, with leaves that all numbers share.
//
// The program is made backwards, leaves first, so that every jump's distance is known when it is written. Distances above 255 do
// not fit a conditional jump (a byte each, bpf(4)) and go by way of an unconditional one.
#include "kernel/seccomp.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/seccomp_table.h"

namespace belljar::kernel {
namespace {

constexpr std::uint16_t kLoadWord = BPF_LD | BPF_W | BPF_ABS;

std::uint32_t return_value(Verdict verdict) noexcept {
  switch (verdict.kind) {
    case Verdict::Kind::kAllow:
      return SECCOMP_RET_ALLOW;
    case Verdict::Kind::kErrno:
      return SECCOMP_RET_ERRNO | verdict.errnum;
    case Verdict::Kind::kNotify:
      return SECCOMP_RET_USER_NOTIF;
    case Verdict::Kind::kKillProcess:
    case Verdict::Kind::kBadProgram:
      break;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

// Both machines we build for are little-endian: the low half comes first.
std::uint32_t offset_of(const Condition& condition) noexcept {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + condition.arg * 8U + (condition.high ? 4U : 0U);
}

// The program, last instruction first. A Label is the number of instructions from it to the end, itself included.
class BackwardAssembler {
 public:
  using Label = std::size_t;

  BackwardAssembler() { code_.reserve(320); }

  Label put(std::uint16_t code, std::uint32_t k) { return emit({code, 0, 0, k}); }

  Label jump(std::uint16_t test, std::uint32_t k, Label yes, Label no) {
    if (yes == no) return yes;
    yes = in_reach(yes);
    no = in_reach(no);
    yes = in_reach(yes);  // what `no` needed may have pushed it out
    const Label here = code_.size();
    return emit({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(here - yes),
                 static_cast<std::uint8_t>(here - no), k});
  }

  // One return for all that answer the same, or a nearer copy where the first is out of reach.
  Label verdict(Verdict verdict) {
    const std::uint32_t value = return_value(verdict);
    for (const Return& known : returns_) {
      if (known.value == value && code_.size() - known.label <= kReach) return known.label;
    }
    const Label label = put(BPF_RET | BPF_K, value);
    returns_.push_back({value, label});
    return label;
  }

  Label end() const noexcept { return code_.size(); }
  // What runs next after the instruction about to be written. An entry must be the last one written.
  Label enter(Label target) { return target == end() ? target : put(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(end() - target)); }

  std::vector<sock_filter> finish() && {
    std::ranges::reverse(code_);
    return std::move(code_);
  }

 private:
  struct Return {
    std::uint32_t value;
    Label label;
  };
  static constexpr std::size_t kReach = 240;  // of 255: leaves room for the few instructions a leaf needs before its jump

  Label in_reach(Label target) { return end() - target <= 255 ? target : enter(target); }
  Label emit(sock_filter instruction) {
    code_.push_back(instruction);
    return code_.size();
  }

  std::vector<sock_filter> code_;
  std::vector<Return> returns_;
};
using Label = BackwardAssembler::Label;

// A place in the program, and how to enter it when the accumulator already holds what it loads first.
struct EntryPoint {
  Label label = 0;
  Label loaded = 0;  // behind the load; valid when `word` is set
  std::int32_t word = -1;
};

EntryPoint plain(Label label) { return {label, label, -1}; }

Label enter_with(const EntryPoint& entry, std::int32_t word) {
  return word >= 0 && entry.word == word ? entry.loaded : entry.label;
}

EntryPoint put_condition(BackwardAssembler& program, const Condition& condition, const EntryPoint& holds, const EntryPoint& fails) {
  const auto word = static_cast<std::int32_t>(offset_of(condition));
  const bool any_bit = !condition.equal && condition.value == 0;
  const bool masks = !any_bit && condition.mask != 0xffffffffU;
  const std::int32_t kept = masks ? -1 : word;  // the accumulator still holds the word after the test
  Label yes = enter_with(holds, kept);
  Label no = enter_with(fails, kept);
  if (!any_bit && !condition.equal) std::swap(yes, no);
  Label test = any_bit ? program.jump(BPF_JSET, condition.mask, yes, no) : program.jump(BPF_JEQ, condition.value, yes, no);
  test = program.enter(test);
  if (masks) test = program.put(BPF_ALU | BPF_AND | BPF_K, condition.mask);
  return {program.put(kLoadWord, static_cast<std::uint32_t>(word)), test, word};
}

// A rule as it was compiled: where its clauses from each on begin.
struct CompiledRule {
  Rule rule;
  std::array<EntryPoint, Rule::kMaxClauses> from;
};

// How many of the last clauses are the same; 0 where the last word differs.
std::size_t common_end(const Rule& one, const Rule& other) {
  if (one.otherwise != other.otherwise) return 0;
  const auto a = one.list(), b = other.list();
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

// Rules that end alike share the end.
Label put_rule(BackwardAssembler& program, const Rule& rule, std::vector<CompiledRule>& known) {
  CompiledRule compiled{rule, {}};
  EntryPoint next{};
  std::size_t shared = 0;
  for (const CompiledRule& other : known) {
    const std::size_t common = common_end(rule, other.rule);
    if (common <= shared) continue;
    shared = common;
    next = other.from.at(other.rule.count - common);
  }
  if (shared == 0) next = plain(program.verdict(rule.otherwise));
  for (std::size_t i = rule.count - shared; i-- > 0;) {
    const Clause& clause = rule.clauses[i];
    EntryPoint holds = plain(program.verdict(clause.verdict));
    for (std::size_t c = clause.count; c-- > 0;) holds = put_condition(program, clause.conditions[c], holds, next);
    next = compiled.from.at(i) = holds;
  }
  known.push_back(compiled);
  return next.label;
}

// A run of numbers with one leaf. `weight` counts the numbers of it that the kernel's dry run visits.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t weight = 0;
  Label leaf = 0;
};

Label put_tree(BackwardAssembler& program, std::span<const Range> ranges) {
  if (ranges.size() == 1) return ranges[0].leaf;
  // x, one number of its own, x again: one comparison instead of two.
  if (ranges.size() == 3 && ranges[0].leaf == ranges[2].leaf && ranges[2].first == ranges[1].first + 1) {
    return program.jump(BPF_JEQ, ranges[1].first, ranges[1].leaf, ranges[0].leaf);
  }
  std::uint32_t total = 0;
  for (const Range& range : ranges) total += range.weight;
  std::size_t split = 1;
  std::uint32_t left = ranges[0].weight;
  while (split + 1 < ranges.size() && left + ranges[split].weight / 2 < total / 2) left += ranges[split++].weight;
  const Label high = put_tree(program, ranges.subspan(split));
  const Label low = put_tree(program, ranges.first(split));
  return program.jump(BPF_JGE, ranges[split].first, high, low);
}

// Drops what no path reaches: loads that every way into a leaf has already done. Jumps only get shorter.
std::vector<sock_filter> without_dead_code(const std::vector<sock_filter>& program) {
  std::vector<bool> reached(program.size());
  reached[0] = true;
  const auto targets = [&](std::size_t pc) -> std::pair<std::size_t, std::size_t> {
    const sock_filter& op = program[pc];
    if (BPF_CLASS(op.code) != BPF_JMP) return {pc + 1, pc + 1};
    if (BPF_OP(op.code) == BPF_JA) return {pc + 1 + op.k, pc + 1 + op.k};
    return {pc + 1 + op.jt, pc + 1 + op.jf};
  };
  std::vector<std::size_t> place(program.size());
  std::size_t live = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    place[pc] = live;
    if (!reached[pc]) continue;
    ++live;
    if (BPF_CLASS(program[pc].code) == BPF_RET) continue;
    const auto [yes, no] = targets(pc);
    reached[yes] = reached[no] = true;
  }
  std::vector<sock_filter> kept;
  kept.reserve(live);
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    if (!reached[pc]) continue;
    sock_filter op = program[pc];
    if (BPF_CLASS(op.code) == BPF_JMP) {
      const auto [yes, no] = targets(pc);
      const std::size_t next = place[pc] + 1;
      if (BPF_OP(op.code) == BPF_JA) {
        op.k = static_cast<std::uint32_t>(place[yes] - next);
      } else {
        op.jt = static_cast<std::uint8_t>(place[yes] - next);
        op.jf = static_cast<std::uint8_t>(place[no] - next);
      }
    }
    kept.push_back(op);
  }
  return kept;
}

class Compiler {
 public:
  explicit Compiler(const SeccompSpec& spec) : spec_(spec) {}

  std::vector<sock_filter> run() {
    put_leaves();
    const std::vector<Range> ranges = number_ranges();
    const Label tree = put_tree(program_, ranges);
    program_.enter(tree);
    program_.put(kLoadWord, offsetof(seccomp_data, nr));
    const Label native = program_.end();
    const Label foreign = program_.verdict(foreign_verdict(spec_));
    program_.jump(BPF_JEQ, kNativeArch, native, foreign);
    program_.put(kLoadWord, offsetof(seccomp_data, arch));
    return without_dead_code(std::move(program_).finish());
  }

 private:
  static constexpr std::size_t kGroups = static_cast<std::size_t>(Group::kCount);

  // One leaf for each different rule; groups with equal rules share it.
  void put_leaves() {
    std::array<Rule, kGroups> rules;
    for (std::size_t g = 0; g < kGroups; ++g) {
      rules[g] = rule_for(spec_, static_cast<Group>(g));
      const auto* same = std::find(rules.begin(), rules.begin() + static_cast<std::ptrdiff_t>(g), rules[g]);
      const auto index = static_cast<std::size_t>(same - rules.begin());
      leaves_[g] = index < g ? leaves_[index] : put_rule(program_, rules[g], known_);
    }
  }

  std::vector<Range> number_ranges() {
    std::vector<Range> ranges;
    ranges.reserve(192);
    const auto add = [&](std::uint32_t first, std::uint32_t weight, Label leaf) {
      if (ranges.empty() || ranges.back().leaf != leaf) ranges.push_back({first, 0, leaf});
      ranges.back().weight += weight;
    };
    for (std::uint32_t number = 0; number < kNumbers; ++number) {
      add(number, 1, leaves_[static_cast<std::size_t>(group_of(number))]);
    }
    if (kHasX32) {
      add(kX32Bit, 0, program_.verdict(foreign_verdict(spec_)));
      add(kSkippedCall, 0, leaves_[static_cast<std::size_t>(Group::kUnknown)]);
    }
    return ranges;
  }

  const SeccompSpec& spec_;
  BackwardAssembler program_;
  std::vector<CompiledRule> known_;
  std::array<Label, kGroups> leaves_{};
};

}  // namespace

std::vector<sock_filter> build_filter(const SeccompSpec& spec) { return Compiler(spec).run(); }

int install_filter(const sock_fprog& program, unsigned flags) noexcept {
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  return result < 0 ? -errno : static_cast<int>(result);
}

std::vector<Refusal> describe(const SeccompSpec& spec) {
  std::vector<Refusal> refusals;
  for (auto g = static_cast<std::size_t>(kFirstConditional); g < static_cast<std::size_t>(Group::kCount); ++g) {
    const Rule rule = rule_for(spec, static_cast<Group>(g));
    const bool by_argument = rule.count != 0;
    if (!by_argument && rule.otherwise.kind == Verdict::Kind::kAllow) continue;
    std::string_view answer = by_argument ? "by argument" : rule.otherwise.errnum == ENOSYS ? "ENOSYS" : "EPERM";
    if (rule.otherwise.errnum == EOPNOTSUPP) answer = "EOPNOTSUPP";
    if (rule.otherwise.kind == Verdict::Kind::kNotify) answer = "notify";
    refusals.push_back({info(static_cast<Group>(g)).name, answer, info(static_cast<Group>(g)).why});
  }
  return refusals;
}

}  // namespace belljar::kernel
