// A policy file is obeyed by the next start: what may be written inside must not have changed it by then. Each refusal has a twin.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

class OwnFiles : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    place_.write("conf/p.toml", kText);
    place_.write("conf/other", "");
    give();
  }
  void give() const {
    if (is_root()) place_.give_to(user_uid(), user_gid());
  }
  Outcome under(const std::string& policy, std::vector<std::string> args) const {
    args.insert(args.begin(), {"--policy", policy});
    return run_in(std::move(args));
  }

  static constexpr const char* kText = "[network]\nmode = \"none\"\n";
  TempDir place_;
  std::string policy_ = place_ / "conf/p.toml";
};

TEST_F(OwnFiles, APolicyInAWritableDirectoryIsReadOnly) {
  const std::string acts = "cd " + place_.path() +
                           "/conf; echo 'mode = \"danger-full-access\"' >p.toml; echo x >new; mv new p.toml; rm -f p.toml;"
                           "ln -sf /dev/null p.toml; mv ../conf ../gone; echo fine >other";
  for (const std::string backend : {"native", "landlock"}) {
    const Outcome wrote = under(policy_, {"--backend", backend, "--write", place_.path(), "-c", acts});
    EXPECT_EQ(read_file(policy_), kText) << backend << wrote;
    EXPECT_EQ(read_file(place_ / "conf/other"), "fine\n") << backend << wrote;
  }
  under("workspace-write", {"--write", place_.path(), "-c", acts});
  EXPECT_FALSE(exists(policy_)) << "the twin: nobody obeys it there";
}

TEST_F(OwnFiles, APolicyThatTheCommandMayExchangeIsRefused) {
  ASSERT_EQ(::symlink(policy_.c_str(), (workspace_ / "p.toml").c_str()), 0);
  const Outcome link = under(workspace_ / "p.toml", {"--", "true"});
  EXPECT_EQ(link.exit_code, 125);
  EXPECT_TRUE(has(link.err, "may point the symbolic link")) << link;
  const Outcome itself = under(policy_, {"--write", policy_, "--", "true"});
  EXPECT_EQ(itself.exit_code, 125);
  EXPECT_TRUE(has(itself.err, "a rule makes it writable")) << itself;
  EXPECT_EQ(under(policy_, {"--", "true"}).exit_code, 0);
  // In the workspace it may only narrow: whoever takes a line out of it would widen the next run.
  workspace_.write("q.toml", kText);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  EXPECT_NE(under(workspace_ / "q.toml", {"-c", "echo >>q.toml"}).exit_code, 0);
  EXPECT_EQ(read_file(workspace_ / "q.toml"), kText);
  EXPECT_EQ(under(policy_, {"-c", "echo >>q.toml"}).exit_code, 0) << "the twin";
}

}  // namespace
}  // namespace belljar::test
