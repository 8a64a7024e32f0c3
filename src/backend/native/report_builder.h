// An enforcement report while it is being written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "launch/plan.h"

namespace belljar::backend {

// What a clause rests on, by name, and whether the plan has it.
struct Requirement {
  bool there = false;
  std::string_view name;
};

class ReportBuilder {
 public:
  void full(std::string clause, std::string asked, std::string mechanism) {
    add({std::move(clause), std::move(asked), std::move(mechanism), Enforced::kFull, ""});
  }
  void partial(std::string clause, std::string asked, std::string mechanism, std::string detail) {
    add({std::move(clause), std::move(asked), std::move(mechanism), Enforced::kPartial, std::move(detail)});
  }
  void later(std::string clause, std::string asked, std::string detail) {
    add({std::move(clause), std::move(asked), "", Enforced::kNone, std::move(detail), true});
  }
  void none(std::string clause, std::string asked, std::string detail) {
    add({std::move(clause), std::move(asked), "", Enforced::kNone, std::move(detail)});
  }
  // Full where the plan has all of it. Else nothing holds the clause, so that the start is refused unless somebody accepts that.
  void require(const std::vector<Requirement>& parts, std::string clause, std::string asked, std::string mechanism) {
    std::string missing;
    for (const Requirement& part : parts) {
      if (!part.there) missing += format("{}{}", missing.empty() ? "" : ", ", part.name);
    }
    if (missing.empty()) full(std::move(clause), std::move(asked), std::move(mechanism));
    else none(std::move(clause), std::move(asked), "the plan of this start lacks: " + missing);
  }
  void add(EnforcementClause clause) { clauses_.push_back(std::move(clause)); }
  EnforcementReport take() { return std::move(clauses_); }

 private:
  EnforcementReport clauses_;
};

// What clauses of several backends rest on.
inline Requirement dropped(const launch::Plan& plan) { return {plan.drop_privileges, "empty capability sets"}; }
inline Requirement filter(const launch::Plan& plan) { return {!plan.seccomp.empty(), "a filter"}; }

// The mechanism of `protect.nested` where the broker judges. A work tree that is made in the run brings its own `.envrc`
// (file_rules.h).
inline constexpr char kNestedByBroker[] =
    "broker, by name at any depth: git's; those of agents and editors in work trees that stood before the run";

}  // namespace belljar::backend
