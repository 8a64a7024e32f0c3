// File calls performed by the broker answer as the kernel does.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "base/format.h"
#include "broker/support_fixture.h"
#include "broker/support_random.h"

namespace belljar::test {
namespace {

// The first line that differs, with what came before.
std::string difference(const std::string& one, const std::string& other) {
  std::istringstream a(one), b(other);
  std::string line_a, line_b, last;
  for (int number = 1;; ++number) {
    const bool more_a = static_cast<bool>(std::getline(a, line_a));
    const bool more_b = static_cast<bool>(std::getline(b, line_b));
    if (!more_a && !more_b) return "";
    if (!more_a || !more_b || line_a != line_b) return format("line {}\n  kernel: {}\n  broker: {}\n", number, line_a, line_b);
  }
}

class Differential : public Inside {
 protected:
  std::string run(unsigned seed, int operations, bool brokered, std::shared_ptr<const broker::FileRules> rules = nullptr) {
    const std::string outer = dir / format("{}{}", brokered ? "b" : "k", seed);
    const std::string where = outer + "/play";  // ".." of it is the sequence's as well
    std::filesystem::create_directories(where);
    const unsigned uid = is_root() ? user_uid() : getuid(), gid = is_root() ? user_gid() : getgid();
    for (const std::string& each : {outer, where}) {
      if (is_root() && chown(each.c_str(), uid, gid) != 0) ADD_FAILURE() << "chown";
    }
    make_playground(where, uid, gid);
    Setting twin = setting(brokered);
    twin.files = kernel::FileCalls::kWrites;
    twin.options.rules = std::move(rules);
    return run_inside(twin, [&] { return play(where, seed, operations); });
  }
};
INSTANTIATE_TEST_SUITE_P(As, Differential, testing::Values(Front::kRoot, Front::kUser), front_name);

TEST_P(Differential, ARandomSequenceAnswersTheSame) {
  const char* const given = getenv("BELLJAR_TEST_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(atoi(given)) : 1;
  for (unsigned seed = first; seed < first + 6; ++seed) {
    const std::string kernel = run(seed, 3000, false);
    const std::string broker = run(seed, 3000, true);
    ASSERT_GT(kernel.size(), 10000U) << kernel;
    ASSERT_TRUE(kernel == broker) << difference(kernel, broker) << "BELLJAR_TEST_SEED=" << seed;
  }
}

}  // namespace
}  // namespace belljar::test
