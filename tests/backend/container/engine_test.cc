// What is said when an engine misbehaves: one clear error for each way, and nobody waits for ever.
#include "backend/container/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "backend/container/channel.h"
#include "backend/container/container.h"
#include "base/format.h"
#include "support/eventually.h"
#include "support_fake_engine.h"
#include "support_frame.h"

namespace belljar::backend::container {
namespace {

using namespace std::chrono_literals;
using belljar::test::eventually;
using test::FakeEngine;

std::string told(const Error& error) { return std::string(to_string(error.code())) + ": " + error.reason(); }

// Once the last request is for `target`.
bool was_asked(const FakeEngine& fake, const std::string& target) {
  return eventually([&] {
    const auto requests = fake.requests();
    return !requests.empty() && requests.back().find(target) != std::string::npos;
  });
}

Engine connect(FakeEngine& fake) {
  fake.answer_ping();
  auto engine = Engine::connect(fake.address());
  EXPECT_TRUE(engine) << engine.error().line();
  return *engine;
}

TEST(MisbehavingEngine, OneThatIsNotThereOrNoEngine) {
  EXPECT_EQ(Engine::connect({"/nonexistent/sock"}).error().code(), Code::kUnavailable);
  FakeEngine fake;
  fake.answer("/_ping", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK");
  EXPECT_EQ(Engine::connect(fake.address()).error().reason(), "its answer names no API version");
  fake.answer("/_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 2\r\n\r\nOK");
  EXPECT_EQ(Engine::connect(fake.address()).error().reason(), "it speaks API 1.24, and 1.40 is the oldest that is served");
  fake.answer("/_ping", "SSH-2.0-OpenSSH_9.2\r\n\r\n");
  EXPECT_EQ(Engine::connect(fake.address()).error().code(), Code::kDataLoss);
  fake.answer("/_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.99\r\nContent-Length: 2\r\n\r\nOK");
  EXPECT_TRUE(Engine::connect(fake.address()));
}

TEST(MisbehavingEngine, StallsEndAtTheirDeadline) {
  FakeEngine fake;
  fake.answer("/silent", "", FakeEngine::Then::kStall);
  fake.answer("/half", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", FakeEngine::Then::kStall);
  for (const char* target : {"/silent", "/half"}) {
    const auto reply = fetch(fake.address(), {.target = target, .patience = 200ms});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code(), Code::kDeadlineExceeded) << target;
  }
  EXPECT_EQ(upgrade(fake.address(), {.target = "/silent", .patience = 200ms}).error().code(), Code::kDeadlineExceeded);
}

TEST(MisbehavingEngine, AnAnswerThatBreaksOffIsNoAnswer) {
  FakeEngine fake;
  fake.answer("/length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  fake.answer("/chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n9\r\nhalf");
  fake.answer("/chunky", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nwhole\r\n0\r\n\r\n");
  for (const char* target : {"/length", "/chunks"}) {
    const auto reply = fetch(fake.address(), {.target = target});
    ASSERT_FALSE(reply) << target;
    EXPECT_EQ(reply.error().reason(), "it closed the connection in the middle");
  }
  EXPECT_EQ(fetch(fake.address(), {.target = "/chunky"}).error().code(), Code::kDataLoss);
  fake.answer("/whole", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n");
  EXPECT_EQ(fetch(fake.address(), {.target = "/whole"})->body, "whole");
}

TEST(MisbehavingEngine, ItsWordsAreTheReason) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  Spec spec;
  spec.image = "x:1";
  const auto refusal = [&](int status, const std::string& body) {
    fake.answer_json("/containers/create", status, body);
    return told(engine.create(spec).error());
  };
  EXPECT_EQ(refusal(404, R"({"message": "No such image: x:1"})"), "not_found: the engine has none: No such image: x:1");
  EXPECT_EQ(refusal(500, R"({"message": "mkdir /data: no space left on device"})"),
            "resource_exhausted: the container engine says: mkdir /data: no space left on device (HTTP 500)");
  EXPECT_EQ(refusal(400, R"({"message": "invalid \u001b[31m mount"})"),
            "failed_precondition: the container engine says: invalid \\x1b[31m mount (HTTP 400)");
  EXPECT_EQ(refusal(500, "plain text"), "unavailable: the container engine says: plain text (HTTP 500)");
  EXPECT_EQ(refusal(500, ""), "unavailable: the container engine says: it gave no reason (HTTP 500)");
  EXPECT_EQ(refusal(201, "{}"), "data_loss: the engine's answer has no id");
  EXPECT_EQ(refusal(201, R"({"Id": "../../x"})"), "data_loss: the engine's answer has no id");
  EXPECT_EQ(refusal(201, "<html>"), "data_loss: the container engine answered with something that is not JSON");
  fake.answer_json("/containers/create", 201, R"({"Id": "abc123"})");
  const auto made = engine.create(spec);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_EQ(*made, "abc123");
}

TEST(MisbehavingEngine, APullThatFailsInTheMiddleOfASuccessHasFailed) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  ContainerOptions options;
  options.image = "registry.test/team/tool";
  options.login = RegistryLogin{"me", "p?ss>", "registry.test"};
  fake.answer_json("/images/create", 200, "{\"status\": \"Pulling\"}\n{\"errorDetail\": {\"message\": \"toomanyrequests\"}}\n");
  EXPECT_EQ(told(engine.pull(options).error()), "unavailable: the container engine says: toomanyrequests");
  const std::string request = fake.requests().back();
  EXPECT_NE(request.find("fromImage=registry.test%2Fteam%2Ftool&tag=latest"), std::string::npos) << request;
  EXPECT_NE(
      request.find(
          "X-Registry-Auth: eyJwYXNzd29yZCI6InA_c3M-Iiwic2VydmVyYWRkcmVzcyI6InJlZ2lzdHJ5LnRlc3QiLCJ1c2VybmFtZSI6Im1lIn0=\r\n"),
      std::string::npos)
      << request;
  fake.answer_json("/images/create", 404, R"({"message": "repository does not exist"})");
  EXPECT_EQ(engine.pull(options).error().code(), Code::kNotFound);
  fake.answer_json("/images/create", 200, "{\"status\": \"Pull complete\"}\n");
  EXPECT_TRUE(engine.pull(options));
}

TEST(MisbehavingEngine, WhatToDoAboutAPullFitsItsFailure) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  ContainerOptions options;
  options.image = "registry.test/tool:1";
  fake.answer_json("/images/create", 500, R"({"message": "Head \"http://registry.test/v2/\": no basic auth credentials"})");
  EXPECT_EQ(engine.pull(options).error().next(), "check its name, the network and the registry's login");
  fake.answer_json("/images/create", 200, "{\"errorDetail\": {\"message\": \"write /x: no space left on device\"}}\n");
  const auto full = engine.pull(options);
  EXPECT_EQ(full.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(full.error().next(), "free space where the engine keeps its data (docker system prune)");
  fake.answer_json("/images/create", 200, "{\"errorDetail\": {\"message\": \"manifest unknown\"}}\n");
  EXPECT_EQ(engine.pull(options).error().next(), "check its name, the network and the registry's login") << "the twin";
}

TEST(MisbehavingEngine, WhatItSaysOfItselfIsRead) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer_json("/info", 200, R"({"NCPU": 2, "SecurityOptions": ["name=seccomp,profile=default"]})");
  const auto plain = engine.facts();
  ASSERT_TRUE(plain) << plain.error().line();
  EXPECT_EQ(plain->processors, 2);
  EXPECT_TRUE(plain->seccomp);
  EXPECT_FALSE(plain->maps_ids || plain->rootless);
  fake.answer_json("/info", 200, R"({"SecurityOptions": ["name=seccomp,profile=unconfined", "name=userns", "name=rootless"]})");
  const auto other = engine.facts();
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->seccomp);
  EXPECT_TRUE(other->maps_ids && other->rootless);
}

TEST(MisbehavingEngine, ReadOnlyBindsComeWithoutWhatIsMountedBelow) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer_json("/containers/create", 201, R"({"Id": "abc123"})");
  Spec spec;
  spec.image = "x:1";
  spec.binds = {{"/r", "/r", true}, {"/w", "/w", false}, {"/m", "/m", true, true}};
  spec.host_ids = true;
  ASSERT_TRUE(engine.create(spec));
  const std::string request = fake.requests().back();
  const auto alone = [&](const std::string& path) {
    const std::size_t end = request.find("\"Source\":\"" + path + "\"");
    return request.substr(0, end).rfind("\"NonRecursive\":true") > request.substr(0, end).rfind("\"BindOptions\"");
  };
  EXPECT_TRUE(alone("/r")) << request;
  EXPECT_FALSE(alone("/w")) << request;
  EXPECT_FALSE(alone("/m")) << request;
  EXPECT_NE(request.find("\"UsernsMode\":\"host\""), std::string::npos) << request;
}

// What an engine keeps of a container it also shows; and no init of its own may stand between us and the commands.
TEST(MisbehavingEngine, IsNotToldTheVariablesAndAskedForNoInit) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer_json("/containers/create", 201, R"({"Id": "abc123"})");
  Spec spec;
  spec.image = "x:1";
  spec.env = {"TOKEN=hush"};
  spec.labels = {{"seen", "yes"}};
  ASSERT_TRUE(engine.create(spec));
  const std::string request = fake.requests().back();
  EXPECT_EQ(request.find("hush"), std::string::npos) << request;
  EXPECT_NE(request.find("\"Init\":false"), std::string::npos) << request;
  EXPECT_EQ(request.find("\"PidMode\""), std::string::npos) << "Docker knows no `private`: " << request;
  EXPECT_NE(request.find("\"seen\":\"yes\""), std::string::npos) << "the twin: " << request;
}

// Whose default may be the machine's own pid namespace (containers.conf).
TEST(MisbehavingEngine, PodmanIsAskedForAPidNamespace) {
  FakeEngine fake;
  fake.answer("/_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nLibpod-Api-Version: 4.3.1\r\nContent-Length: 2\r\n\r\nOK");
  const auto engine = Engine::connect(fake.address(), 60s);
  ASSERT_TRUE(engine) << engine.error().line();
  fake.answer_json("/containers/create", 201, R"({"Id": "abc123"})");
  Spec spec;
  spec.image = "x:1";
  ASSERT_TRUE(engine->create(spec));
  EXPECT_NE(fake.requests().back().find("\"PidMode\":\"private\""), std::string::npos) << fake.requests().back();
}

TEST(MisbehavingEngine, APullEndsWhenItIsCancelled) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer("/images/create", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", FakeEngine::Then::kStall);
  const CancelToken token = *CancelToken::create();
  std::thread caller([&] {
    EXPECT_TRUE(was_asked(fake, "/images/create"));
    token.cancel();
  });
  ContainerOptions options;
  options.image = "large:1";
  EXPECT_EQ(engine.pull(options, token).error().code(), Code::kCanceled);
  caller.join();
}

// What is put in a foreign byte's place may be another file's name.
TEST(ContainerSpec, NamesThatTheEngineCannotBeToldAreRefused) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer_json("/containers/create", 201, R"({"Id": "abc123"})");
  Spec spec;
  spec.image = "x:1";
  spec.labels = {{"A", "\xc3\xa9"}};
  EXPECT_TRUE(engine.create(spec)) << "the twin";
  for (const auto& change : std::vector<std::function<void(Spec&)>>{
           [](Spec& bad) { bad.binds = {{"/work/\xff", "/w"}}; },
           [](Spec& bad) { bad.binds = {{"/work", "/w\xff"}}; },
           [](Spec& bad) { bad.workdir = "/\xff"; },
       }) {
    Spec bad = spec;
    change(bad);
    EXPECT_EQ(engine.create(bad).error().code(), Code::kInvalidArgument);
  }
}

TEST(PullPolicies, SayWhenTheRegistryIsAsked) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer_json("/images/there:1/json", 200, "{}");
  fake.answer_json("/images/create", 200, "{}\n");
  const auto asks = [&](const char* image, PullPolicy pull) {
    const std::size_t before = fake.requests().size();
    ContainerOptions options;
    options.image = image;
    options.pull = pull;
    const auto fetched = fetch_image(engine, options);
    const std::vector<std::string> requests = fake.requests();
    const bool pulled = std::any_of(requests.begin() + static_cast<std::ptrdiff_t>(before), requests.end(),
                                    [](const auto& request) { return request.find("/images/create") != std::string::npos; });
    return std::string(fetched ? "there" : to_string(fetched.error().code())) + (pulled ? ", pulled" : "");
  };
  EXPECT_EQ(asks("there:1", PullPolicy::kIfNotPresent), "there");
  EXPECT_EQ(asks("there:1", PullPolicy::kAlways), "there, pulled");
  EXPECT_EQ(asks("there:1", PullPolicy::kNever), "there");
  EXPECT_EQ(asks("away:1", PullPolicy::kIfNotPresent), "not_found, pulled") << "this registry only says that it has it";
  EXPECT_EQ(asks("away:1", PullPolicy::kNever), "not_found");
}

// --- the line to pid 1

constexpr char kUpgraded[] = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

Result<std::shared_ptr<Channel>> attach(FakeEngine& fake, const std::string& stream, FakeEngine::Then then) {
  fake.answer("/attach", kUpgraded + stream, then);
  const Engine engine = connect(fake);
  auto attached = engine.attach("abc");
  if (!attached) return attached.error();
  return Channel::open(*std::move(attached));
}

TEST(MisbehavingEngine, APid1ThatDoesNotGreetIsNotUsed) {
  const std::string hello = make_hello(kProtocol, 1);
  const auto greeting = [](const std::string& stream, FakeEngine::Then then = FakeEngine::Then::kStall,
                           std::chrono::milliseconds patience = 600s) {
    FakeEngine fake;
    const auto channel = attach(fake, stream, then);
    if (!channel) return told(channel.error());
    const auto greeted = (*channel)->await_hello(patience);
    return greeted ? std::string("greeted") : told(greeted.error());
  };
  EXPECT_EQ(greeting(frame(1, hello)), "greeted");
  EXPECT_EQ(greeting(frame(1, hello.substr(0, 5)) + frame(1, hello.substr(5))), "greeted");
  EXPECT_EQ(greeting(frame(1, make_hello(kProtocol + 1, 1))), "failed_precondition: its pid 1 is of another version of Belljar");
  EXPECT_EQ(greeting(frame(1, make_hello(kProtocol, 7))),
            "failed_precondition: our program is process 7 there instead of pid 1: commands could stop it, and outlive it");
  EXPECT_EQ(greeting("", FakeEngine::Then::kStall, 200ms), "deadline_exceeded: its pid 1 did not greet for 0 s");
  std::string said;  // as soon as it arrives in time
  int patience = 1;
  for (; patience <= 64; patience *= 2) {
    said = greeting(frame(2, "no such file"), FakeEngine::Then::kStall, std::chrono::seconds(patience));
    if (said.find("it said") != std::string::npos) break;
  }
  EXPECT_EQ(said, format("deadline_exceeded: its pid 1 did not greet for {} s; it said: no such file", patience));
  EXPECT_EQ(greeting(frame(3, "exec format error"), FakeEngine::Then::kStall),
            "failed_precondition: the engine reports an error; it said: exec format error");
  EXPECT_EQ(greeting("", FakeEngine::Then::kClose), "failed_precondition: its pid 1 ended, or the engine closed the connection");
  EXPECT_EQ(greeting(frame(3, "exec format error"), FakeEngine::Then::kClose),
            "failed_precondition: its pid 1 ended, or the engine closed the connection; it said: exec format error");
  EXPECT_EQ(greeting("plain text instead"),
            "failed_precondition: the engine sent a stream that is not framed: a header of type 112 and length 1847620709");
  EXPECT_EQ(greeting(frame(1, "a shell's prompt $ ")),
            "failed_precondition: a record of 1819027315 bytes: its pid 1 is not Belljar's");
}

// It greets, and no sockets came: the container is removed, and nothing of the door stays.
TEST(MisbehavingEngine, AContainerThatPassesNoSocketsOutIsNotUsed) {
  const belljar::test::TempDir state;
  FakeEngine fake;
  const Engine engine = connect(fake);
  fake.answer_json("/containers/create", 201, R"({"Id":"abc"})");
  fake.answer("/attach", kUpgraded + frame(1, make_hello(kProtocol, 1)), FakeEngine::Then::kStall);
  fake.answer_json("/containers/abc/start", 204, "");
  Spec spec;
  EXPECT_TRUE(Container::start(engine, spec)) << "the twin asks for none";
  spec.state = state.path();
  spec.sockets = {{.purpose = launch::InnerSocket::Purpose::kProxy, .port = 3128}};
  const auto started = Container::start(engine, spec);
  ASSERT_FALSE(started);
  EXPECT_EQ(told(started.error()), "failed_precondition: its pid 1 greeted and passed out no sockets");
  EXPECT_TRUE(std::filesystem::is_empty(state.path()));
  const auto requests = fake.requests();
  const auto created = std::ranges::find_if(requests.rbegin(), requests.rend(), [](const auto& request) {
    return request.find("/containers/create") != std::string::npos;
  });
  ASSERT_NE(created, requests.rend());
  EXPECT_NE(created->find(R"("--door","/.belljar/door/socket","--socket","L2130706433:3128")"), std::string::npos) << *created;
  EXPECT_NE(created->find(R"("Target":"/.belljar/door")"), std::string::npos) << *created;
}

TEST(MisbehavingEngine, AStartEndsWhenItIsCancelled) {
  FakeEngine fake;
  const Engine engine = connect(fake);
  const auto channel = attach(fake, "", FakeEngine::Then::kStall);
  ASSERT_TRUE(channel);
  for (const char* stalled : {"/_ping", "/info", "/images/x/json", "/containers/x/start"})
    fake.answer(stalled, "", FakeEngine::Then::kStall);
  const CancelToken token = *CancelToken::create();
  std::thread caller([&] {
    EXPECT_TRUE(was_asked(fake, "/info"));
    token.cancel();
  });
  EXPECT_EQ(engine.facts(600s, token).error().code(), Code::kCanceled);
  EXPECT_EQ(Engine::connect(fake.address(), 600s, token).error().code(), Code::kCanceled);
  EXPECT_EQ(engine.find_image("x", token).error().code(), Code::kCanceled);
  EXPECT_EQ(engine.start("x", token).error().code(), Code::kCanceled);
  EXPECT_EQ((*channel)->await_hello(600s, token).error().code(), Code::kCanceled);
  caller.join();
}

TEST(MisbehavingEngine, ALineThatBreaksIsToldToWhoeverWaits) {
  FakeEngine fake;
  auto channel = attach(fake, frame(1, make_hello(kProtocol, 1)), FakeEngine::Then::kClose);
  ASSERT_TRUE(channel);
  (void)(*channel)->await_hello(60s);
  const auto added = (*channel)->add_command();  // before or after it was noticed
  if (added) {
    EXPECT_TRUE(eventually([&] { return added->second->closed(); }));
  }
  EXPECT_EQ((*channel)->ping(60s).error().code(), Code::kUnavailable);
  EXPECT_FALSE((*channel)->alive());
}

}  // namespace
}  // namespace belljar::backend::container
