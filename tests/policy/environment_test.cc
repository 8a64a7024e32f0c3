#include <gtest/gtest.h>

#include <algorithm>

#include "policy/defaults.h"
#include "policy/paths.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

const std::vector<std::string> kCaller{"PATH=/bin",
                                       "HOME=/home/u",
                                       "LC_ALL=C.UTF-8",
                                       "FOO=1",
                                       "AWS_SECRET_ACCESS_KEY=x",
                                       "GITHUB_TOKEN=y",
                                       "LD_PRELOAD=/x.so",
                                       "BASH_ENV=/x",
                                       "NODE_OPTIONS=-r x",
                                       "GIT_DIR=/x",
                                       "SSH_AUTH_SOCK=s",
                                       "my_api_key=z",
                                       "broken",
                                       "=odd",
                                       "PATH=/second",
                                       "EMPTY=",
                                       "PYTHONPATH=/x"};

std::string built(const Environment& environment, const std::map<std::string, std::string>& overrides = {}) {
  std::string result;
  for (const std::string& variable : build_environment(environment, kCaller, overrides)) result += variable + " ";
  return result;
}

Environment defaults() { return merged({})->policy.environment; }

TEST(Environment, CorePassesPlaceAndLanguageOnly) {
  EXPECT_EQ(built(defaults()), "HOME=/home/u LC_ALL=C.UTF-8 PATH=/bin TMPDIR=/tmp ");
}

TEST(Environment, AllPassesEverythingButWhatLooksSecret) {
  Environment environment = defaults();
  environment.inherit = Inherit::kAll;
  EXPECT_EQ(built(environment),
            "BASH_ENV=/x EMPTY= FOO=1 GIT_DIR=/x HOME=/home/u LC_ALL=C.UTF-8 LD_PRELOAD=/x.so NODE_OPTIONS=-r x PATH=/bin "
            "PYTHONPATH=/x TMPDIR=/tmp ");
}

TEST(Environment, IncludeAddsExcludeWinsPassAndSetOverrule) {
  Environment environment;
  environment.inherit = Inherit::kNone;
  EXPECT_EQ(built(environment), "");
  environment.include = {"FOO", "*TOKEN"};
  EXPECT_EQ(built(environment), "FOO=1 GITHUB_TOKEN=y ");
  environment.exclude = {"*token*"};
  EXPECT_EQ(built(environment), "FOO=1 ");
  environment.pass = {"GITHUB_TOKEN"};
  EXPECT_EQ(built(environment), "FOO=1 GITHUB_TOKEN=y ");
  environment.pass = {"github_token"};
  EXPECT_EQ(built(environment), "FOO=1 ");
  environment.set = {{"FOO", "2"}, {"A_TOKEN", "3"}};
  EXPECT_EQ(built(environment), "A_TOKEN=3 FOO=2 ");
  EXPECT_EQ(built(environment, {{"FOO", "4"}}), "A_TOKEN=3 FOO=4 ");
}

TEST(Environment, NoCoreVariableLooksSecretOrSteersTheLoader) {
  for (const std::string_view core : core_variables()) {
    for (const std::string_view pattern : secret_variables()) EXPECT_FALSE(name_match(pattern, core)) << core << " by " << pattern;
    for (const std::string_view loader : {"LD_*", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_*", "PYTHON*", "PERL*", "RUBY*"})
      EXPECT_FALSE(name_match(loader, core)) << core;
  }
}

TEST(Defaults, SecretsAreAbsoluteNormalAndOutsideTheCaches) {
  const auto secrets = default_secret_paths("/home/u", "/run/user/1");
  EXPECT_GT(secrets.size(), 100U);
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    EXPECT_EQ(normal(secrets[i]), secrets[i]);
    EXPECT_EQ(std::ranges::count(secrets, secrets[i]), 1) << secrets[i];
  }
  for (const char* path :
       {"/home/u/.ssh", "/home/u/.aws", "/home/u/.gnupg", "/home/u/.netrc", "/home/u/.config/gh", "/home/u/.docker",
        "/home/u/.kube", "/home/u/.npmrc", "/home/u/.pypirc", "/home/u/.git-credentials", "/home/u/.cargo/credentials.toml",
        "/home/u/.mozilla", "/home/u/.bash_history", "/etc/shadow", "/run/docker.sock", "/run/user/1/gnupg"}) {
    EXPECT_EQ(std::ranges::count(secrets, path), 1) << path;
  }
  // Without a home, nothing that lies in one.
  for (const std::string& path : default_secret_paths("", "")) EXPECT_FALSE(path.starts_with("/.")) << path;
  // What package managers read to work at all stays readable.
  for (const char* path : {"/home/u/.cargo/config.toml", "/home/u/.m2/settings.xml", "/home/u/.gitconfig",
                           "/home/u/.gradle/gradle.properties", "/home/u/.bashrc", "/etc/ssl/certs"}) {
    EXPECT_EQ(access_of(merged({}), path), "read") << path;
  }
}

}  // namespace
}  // namespace belljar::policy
