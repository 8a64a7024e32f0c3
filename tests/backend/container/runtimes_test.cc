#include "backend/container/runtimes.h"

#include <gtest/gtest.h>

#include "backend/container/engine.h"
#include "belljar/policy.h"

namespace belljar::backend::container {
namespace {

EngineFacts facts() {
  EngineFacts facts;
  facts.default_runtime = "runc";
  facts.runtimes = {{"runc", "runc"},
                    {"gvisor", "/usr/local/bin/runsc"},
                    {"kata", "io.containerd.kata.v2"},
                    {"kata-by-name-only", "/usr/bin/runc"}};
  return facts;
}

TEST(Runtimes, TheProgramTellsAndNotTheName) {
  EXPECT_EQ(isolation_of_runtime(facts(), ""), Isolation::kContainer);
  EXPECT_EQ(isolation_of_runtime(facts(), "gvisor"), Isolation::kVm);
  EXPECT_EQ(isolation_of_runtime(facts(), "kata"), Isolation::kVm);
  EXPECT_EQ(isolation_of_runtime(facts(), "kata-by-name-only"), Isolation::kContainer);
  EXPECT_EQ(isolation_of_runtime(facts(), "runsc"), Isolation::kContainer) << "the engine does not know it";
  EXPECT_EQ(isolation_of_runtime(facts(), "io.containerd.kata.v2"), Isolation::kVm) << "a shim's own name";
}

TEST(Runtimes, OneThatHoldsEnoughIsTakenWhereNoneIsNamed) {
  EXPECT_EQ(choose_runtime(facts(), "", Isolation::kNone), "");
  EXPECT_EQ(choose_runtime(facts(), "", Isolation::kContainer), "");
  EXPECT_EQ(choose_runtime(facts(), "", Isolation::kVm), "gvisor");
  EXPECT_EQ(choose_runtime(facts(), "runc", Isolation::kVm), "runc") << "the caller's word; the report then refuses";
  EngineFacts plain = facts();
  plain.runtimes = {{"runc", "runc"}};
  EXPECT_EQ(choose_runtime(plain, "", Isolation::kVm), "");
}

}  // namespace
}  // namespace belljar::backend::container
