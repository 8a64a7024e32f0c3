#include "belljar/redact.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belljar {
namespace {

const std::string kGithub = "ghp_" + std::string(36, 'a');

TEST(Redactor, GivenValuesAndKnownShapesAreReplacedAndTheRestStays) {
  Redactor redactor;
  EXPECT_TRUE(redactor.add("DB", "hunter22"));
  EXPECT_EQ(redactor("pass hunter22, token " + kGithub + "."), "pass [redacted:DB], token [redacted:github-token].");
  EXPECT_EQ(redactor("hunter2 ghp_short ghp_"), "hunter2 ghp_short ghp_");
  EXPECT_EQ(redactor("id AKIAIOSFODNN7EXAMPLE"), "id [redacted:aws-key-id]");
  EXPECT_EQ(redactor("task-list risk-averse-people-in-the-house"), "task-list risk-averse-people-in-the-house");
  EXPECT_EQ(redactor("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl!"), "[redacted:json-web-token]!");
  EXPECT_EQ(redactor("eyJhbGciOiJIUzI1NiJ9eyJzdWIiOiIxIn0c2lnbmF0dXJl"), "eyJhbGciOiJIUzI1NiJ9eyJzdWIiOiIxIn0c2lnbmF0dXJl");
}

TEST(Redactor, APrivateKeyGoesWholeAndACertificateStays) {
  const std::string key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
  const std::string certificate = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----";
  EXPECT_EQ(Redactor()("a\n" + key + "\nb"), "a\n[redacted:private-key]\nb");
  EXPECT_EQ(Redactor()("a\n" + certificate + "\nb"), "a\n" + certificate + "\nb");
}

TEST(Redactor, SecretsAreFoundByWhereTheyStandInACommand) {
  const Redactor redactor;
  const auto words = [&](const std::vector<std::string>& argv) {
    std::string text;
    for (const std::string& word : redactor.arguments(argv)) text += (text.empty() ? "" : "|") + word;
    return text;
  };
  EXPECT_EQ(words({"login", "--password=hunter2", "x"}), "login|--password=[redacted:password]|x");
  EXPECT_EQ(words({"login", "--password=two words"}), "login|--password=[redacted:password]");
  EXPECT_EQ(words({"login", "--api-token", "abc", "x"}), "login|--api-token|[redacted:api-token]|x");
  EXPECT_EQ(words({"login", "--password", "--verbose"}), "login|--password|--verbose");
  EXPECT_EQ(words({"env", "PGPASSWORD=a b", "psql"}), "env|PGPASSWORD=[redacted:PGPASSWORD]|psql");
  EXPECT_EQ(words({"git", "clone", "https://joe:pw@git.test/x?y=1@2"}),
            "git|clone|https://joe:[redacted:password]@git.test/x?y=1@2");
  EXPECT_EQ(words({"pip", "--index-url=http://u:p%40w@h:1/"}), "pip|--index-url=http://u:[redacted:password]@h:1/");
  EXPECT_EQ(words({"/usr/bin/curl", "-u", "joe:pw", "-H", "Authorization: Bearer xyz", "-H", "X-Api-Key: k"}),
            "/usr/bin/curl|-u|joe:[redacted:password]|-H|Authorization: Bearer [redacted:Authorization]|-H|X-Api-Key: "
            "[redacted:X-Api-Key]");
  EXPECT_EQ(words({"sh", "-c", "PGPASSWORD=x psql -h db; curl --user joe:pw 'http://a:b@c/' --token \"t u\" end"}),
            "sh|-c|PGPASSWORD=[redacted:PGPASSWORD] psql -h db; curl --user joe:[redacted:password] "
            "'http://a:[redacted:password]@c/' --token \"[redacted:token]\" end");
  EXPECT_EQ(redactor.command("curl -H 'Authorization: token abc' --secret='a b' h"),
            "curl -H 'Authorization: token [redacted:Authorization]' --secret=[redacted:secret] h");
  // The twin: what is no secret, and what only names one.
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {"sort", "-u", "a:b"},
           {"docker", "run", "-u", "1000:1000", "image:tag@sha256:abc"},
           {"git", "clone", "git@github.com:org/repo", "ssh://git@host/x"},
           {"llm", "--max-tokens", "100", "--sort-key=name", "--password-file=/run/pw", "--token-type", "bearer"},
           {"sh", "-c",
            "login --password=\"$PASSWORD\" --token $TOKEN; curl -H \"Authorization: Bearer $T\" -u $U:$P http://h/a:b@c"},
           {"npm", "install", "npm:react@18"},
           {"tool", "key=value", "a=b", "--author=x", "--keyboard", "us"}}) {
    std::string same;
    for (const std::string& word : argv) same += (same.empty() ? "" : "|") + word;
    EXPECT_EQ(words(argv), same);
  }
}

TEST(Redactor, QuotesInsideOfAWordAreRead) {
  const Redactor redactor;
  for (const char* same : {"echo a'b c'd", "git commit -m \"don't do it\"", "git commit --message='two words'", "it's open",
                           "echo 'a'\"b c\"", "x=\"a b\" y"})
    EXPECT_EQ(redactor.command(same), same);
  EXPECT_EQ(redactor.command("curl --header='Authorization: Bearer x' h"),
            "curl --header='Authorization: Bearer [redacted:Authorization]' h");
  EXPECT_EQ(redactor.command("PGPASSWORD='a b' psql"), "PGPASSWORD=[redacted:PGPASSWORD] psql");
  EXPECT_EQ(redactor.command("echo Authorization: Bearer x; ls"), "echo Authorization: Bearer [redacted:Authorization]; ls");
  std::string deep = " --password x ";
  for (int i = 0; i < 20'000; ++i) deep = i % 2 == 0 ? "'\"" + deep + "\"'" : "\"'" + deep + "'\"";
  EXPECT_EQ(redactor.command(deep).find("password x"), std::string::npos);
}

TEST(Redactor, TokensOfGitMembersOfJsonAndShortOptionsAreSecretsToo) {
  const Redactor redactor;
  EXPECT_EQ(redactor.command("git clone https://tok12345678@github.com/x"), "git clone https://[redacted:token]@github.com/x");
  EXPECT_EQ(redactor.command("curl -d '{\"user\": \"joe\", \"password\": \"a b\"}' h"),
            "curl -d '{\"user\": \"joe\", \"password\": \"[redacted:password]\"}' h");
  EXPECT_EQ(redactor.command("curl -d \"{\\\"password\\\":\\\"x\\\"}\" h"),
            "curl -d \"{\\\"password\\\":\\\"[redacted:password]\\\"}\" h");
  EXPECT_EQ(redactor.command("sshpass -p X ssh h -p 22; mysql -pX db"),
            "sshpass -p [redacted:password] ssh h -p 22; mysql -p[redacted:password] db");
  for (const char* same : {"git clone https://joe@git.test/x", "curl -d '{\"user\": \"joe\", \"max_tokens\": 4}' h", "ssh -p 22 h",
                           "docker run -p80:80 x", "mysql -p db"})
    EXPECT_EQ(redactor.command(same), same);
}

TEST(Redactor, WhatAShellWouldRunIsNotHidden) {
  const Redactor redactor;
  EXPECT_EQ(redactor.command("curl -H \"X-Api-Key: abc$(id)\" h"), "curl -H \"X-Api-Key: [redacted:X-Api-Key]$(id)\" h");
  EXPECT_EQ(redactor.command("login --token=abc`id`"), "login --token=[redacted:token]`id`");
  EXPECT_EQ(redactor.command("login --token='abc$(id)'"), "login --token=[redacted:token]") << "it runs nothing";
  Redactor learned;
  EXPECT_EQ(redactor.command("MY_TOKEN='rm -rf x'; OTHER_TOKEN=abcdef12; eval $MY_TOKEN", learned, Redactor::Values::kWords),
            "MY_TOKEN='rm -rf x'; OTHER_TOKEN=[redacted:OTHER_TOKEN]; eval $MY_TOKEN");
  EXPECT_EQ(learned("abcdef12 is said elsewhere"), "[redacted:OTHER_TOKEN] is said elsewhere");
}

TEST(Redactor, ValuesAreFoundInJsonAndInMessages) {
  Redactor redactor;
  redactor.add("KEY", "ab\"cd\\ef\n12");
  EXPECT_EQ(redactor(R"({"x": "ab\"cd\\ef\n12"})"), R"({"x": "[redacted:KEY]"})");
  EXPECT_EQ(redactor("`ab\"cd\\ef\\x0a12` is odd"), "`[redacted:KEY]` is odd");
}

TEST(Redactor, TheLongerOfTwoValuesThatBeginAlikeWins) {
  Redactor redactor;
  redactor.add("SHORT", "abcdef");
  redactor.add("LONG", "abcdefgh");
  EXPECT_EQ(redactor("abcdefgh abcdefg"), "[redacted:LONG] [redacted:SHORT]g");
}

TEST(Redactor, ShortValuesAreNotTaken) {
  Redactor redactor;
  EXPECT_FALSE(redactor.add("PIN", "1234"));
  EXPECT_EQ(redactor("1234"), "1234");
}

TEST(Redactor, TheEnvironmentGivesTheValuesOfSecretNames) {
  const Redactor redactor = Redactor::from_environment(
      {{"GITHUB_TOKEN", "t0ps3cret"}, {"EDITOR", "emacs-nox"}, {"AWS_REGION", "us-east-1"}, {"SSH_AUTH_SOCK", "/run/agent"}});
  EXPECT_EQ(redactor("t0ps3cret emacs-nox us-east-1 /run/agent"), "[redacted:GITHUB_TOKEN] emacs-nox us-east-1 /run/agent");
  // A value that begins like a path, and paths: to what is there, and by the name.
  const Redactor slashed = Redactor::from_environment(
      {{"AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI"}, {"MY_SECRET", "/usr/bin"}, {"SECRET_FILE", "/run/secrets/it"}});
  EXPECT_EQ(slashed("/wJalrXUtnFEMI /usr/bin /run/secrets/it"), "[redacted:AWS_SECRET_ACCESS_KEY] /usr/bin /run/secrets/it");
}

// However the text is cut, what comes out is what comes out of the whole.
TEST(Redactor, AStreamCutAnywhereGivesTheSame) {
  auto redactor = std::make_shared<Redactor>();
  redactor->add("DB", "hunter22");
  const std::string text = "x hunter22 y " + kGithub + " hunter2 -----BEGIN PRIVATE KEY-----\nM\n-----END PRIVATE KEY-----\nask-" +
                           std::string(30, 'b') + " hunt";
  const std::string expected = (*redactor)(text);
  ASSERT_EQ(expected.find("hunter22"), std::string::npos);
  ASSERT_NE(expected.find("ask-bbb"), std::string::npos) << expected;
  for (std::size_t size = 1; size < text.size(); ++size) {
    Redactor::Stream stream(redactor);
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) out += stream.feed(text.substr(at, size));
    ASSERT_EQ(out + stream.finish(), expected) << "pieces of " << size;
  }
}

TEST(Redactor, PlainTextIsNotHeldBack) {
  Redactor::Stream stream(std::make_shared<Redactor>());
  EXPECT_EQ(stream.feed("hello world\n"), "hello world\n");
}

}  // namespace
}  // namespace belljar
