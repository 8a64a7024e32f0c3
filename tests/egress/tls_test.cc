// The authority of a sandbox and TLS over memory: certificates, names, ALPN, what is refused of a server and why.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <fstream>

#include "egress/tls/authority.h"
#include "egress/tls/interceptor.h"
#include "egress/tls/trust.h"
#include "support/temp_dir.h"

namespace belljar::egress::tls {
namespace {

using StreamState = SecureStream::State;
using std::chrono::hours;

policy::Host host(const char* name) { return policy::parse_host(name).value(); }

// A client or server of the test's own over memory, driven against a SecureStream.
struct TlsPeer {
  CtxPtr context;
  SslPtr ssl;
  BIO *in = nullptr, *out = nullptr;

  explicit TlsPeer(const SSL_METHOD* method) : context(SSL_CTX_new(method)) {}
  void begin() {
    ssl.reset(SSL_new(context.get()));
    in = BIO_new(BIO_s_mem());
    out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl.get(), in, out);
  }
  std::string take() const {
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    std::string bytes(data, static_cast<std::size_t>(size));
    BIO_reset(out);
    return bytes;
  }
  void put(const std::string& bytes) const { BIO_write(in, bytes.data(), static_cast<int>(bytes.size())); }
};

// Runs both handshakes as far as they go; the state of ours.
StreamState shake(const TlsPeer& peer, SecureStream& stream) {
  StreamState state = StreamState::kMore;
  for (int round = 0; round < 10 && state != StreamState::kFailed; ++round) {
    SSL_do_handshake(peer.ssl.get());
    stream.put(peer.take());
    state = stream.handshake();
    peer.put(stream.take());
  }
  return state;
}

TlsPeer client_of(const Interceptor& interceptor, const char* sni, const std::string& alpn) {
  TlsPeer peer(TLS_client_method());
  add_to_store(SSL_CTX_get_cert_store(peer.context.get()), interceptor.bundle());
  SSL_CTX_set_verify(peer.context.get(), SSL_VERIFY_PEER, nullptr);
  if (!alpn.empty())
    SSL_CTX_set_alpn_protos(peer.context.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                            static_cast<unsigned>(alpn.size()));
  peer.begin();
  if (sni != nullptr) SSL_set_tlsext_host_name(peer.ssl.get(), sni);
  SSL_set1_host(peer.ssl.get(), "web.test");
  SSL_set_connect_state(peer.ssl.get());
  return peer;
}

TEST(Authority, ALeafIsForItsHostAndVerifiesUnderTheAuthority) {
  Authority authority = Authority::create().value();
  X509* leaf = authority.leaf_for(host("web.test"));
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(X509_verify(leaf, X509_get0_pubkey(authority.certificate())), 1);
  EXPECT_EQ(X509_check_host(leaf, "web.test", 8, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(leaf, "sub.web.test", 12, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ca(leaf), 0);
  EXPECT_EQ(X509_check_ca(authority.certificate()), 1);
  X509* address = authority.leaf_for(host("192.0.2.7"));
  EXPECT_EQ(X509_check_ip_asc(address, "192.0.2.7", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(address, "192.0.2.8", 0), 0);
  const std::string longest = std::string(63, 'a') + "." + std::string(63, 'b') + ".test";
  EXPECT_EQ(X509_check_host(authority.leaf_for(host(longest.c_str())), longest.c_str(), longest.size(), 0, nullptr), 1);
}

TEST(Authority, TwoSandboxesTrustDifferentOnes) {
  Authority one = Authority::create().value(), other = Authority::create().value();
  EXPECT_NE(X509_verify(one.leaf_for(host("web.test")), X509_get0_pubkey(other.certificate())), 1);
}

TEST(Authority, ALeafIsKeptForAWeekAndThenMadeAnew) {
  const auto now = WallClock::now();
  Authority authority = Authority::create(now).value();
  const std::string first = to_pem(authority.leaf_for(host("web.test"), now));
  EXPECT_EQ(to_pem(authority.leaf_for(host("web.test"), now + hours(24))), first);
  EXPECT_NE(to_pem(authority.leaf_for(host("web.test"), now + hours(24 * 8))), first);
  for (int i = 0; i < 2000; ++i) ASSERT_NE(authority.leaf_for(host(("h" + std::to_string(i) + ".test").c_str()), now), nullptr);
  EXPECT_LE(authority.kept(), 512U);
}

TEST(TlsTowardsTheClient, TheNameItAskedForIsServedAndAnotherIsNot) {
  const auto interceptor = make_interceptor({}).value();
  for (const char* sni : {"web.test", "WEB.test", static_cast<const char*>(nullptr)}) {
    const TlsPeer peer = client_of(*interceptor, sni, "\x02h2\x08http/1.1");
    const auto stream = interceptor->accept(host("web.test"));
    EXPECT_EQ(shake(peer, *stream), StreamState::kReady) << (sni == nullptr ? "no SNI" : sni) << stream->fault().text;
    EXPECT_EQ(SSL_get_verify_result(peer.ssl.get()), X509_V_OK);
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(peer.ssl.get(), &chosen, &size);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size), "h2");
    EXPECT_EQ(stream->protocol(), "h2");
  }
  for (const char* sni : {"other.test", "web.test.other.test", "sub.web.test"}) {
    const TlsPeer peer = client_of(*interceptor, sni, "");
    const auto stream = interceptor->accept(host("web.test"));
    EXPECT_EQ(shake(peer, *stream), StreamState::kFailed) << sni;
    EXPECT_EQ(stream->fault().reason, "tls-sni");
    EXPECT_NE(stream->fault().text.find(sni), std::string::npos);
    EXPECT_EQ(SSL_is_init_finished(peer.ssl.get()), 0);
  }
}

TEST(TlsTowardsTheClient, TheBetterHttpOfThoseOfferedIsSpoken) {
  const auto interceptor = make_interceptor({}).value();
  for (const auto& [offered, spoken] : {std::pair("\x08http/1.0", "http/1.0"),
                                        {"\x08http/1.0\x08http/1.1", "http/1.1"},
                                        {"\x08http/1.1", "http/1.1"},
                                        {"\x02h2", "h2"},
                                        {"\x08http/1.0\x08http/1.1\x02h2", "h2"}}) {
    const TlsPeer peer = client_of(*interceptor, "web.test", offered);
    const auto stream = interceptor->accept(host("web.test"));
    EXPECT_EQ(shake(peer, *stream), StreamState::kReady) << offered << stream->fault().text;
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(peer.ssl.get(), &chosen, &size);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size), spoken);
  }
}

TEST(TlsTowardsTheClient, OneThatSpeaksNoHttpThatIsReadIsTold) {
  const auto interceptor = make_interceptor({}).value();
  const TlsPeer peer = client_of(*interceptor, "web.test", "\x02h3\x04smtp");
  const auto stream = interceptor->accept(host("web.test"));
  EXPECT_EQ(shake(peer, *stream), StreamState::kFailed);
  EXPECT_EQ(stream->fault().reason, "tls-alpn");
}

TEST(TlsTowardsTheClient, BytesPassBothWaysAndTheEndIsSeen) {
  const auto interceptor = make_interceptor({}).value();
  const TlsPeer peer = client_of(*interceptor, "web.test", "");
  const auto stream = interceptor->accept(host("web.test"));
  ASSERT_EQ(shake(peer, *stream), StreamState::kReady);
  const std::string big(100'000, 'x');
  ASSERT_GT(SSL_write(peer.ssl.get(), big.data(), static_cast<int>(big.size())), 0);
  stream->put(peer.take());
  std::string plain;
  EXPECT_TRUE(stream->open(plain, 1000)) << "there is more than was asked for";
  EXPECT_EQ(plain.size(), 1000U);
  while (stream->open(plain, big.size() + 1)) {
  }
  EXPECT_EQ(plain, big);
  stream->seal("answer");
  peer.put(stream->take());
  char buffer[10];
  EXPECT_EQ(SSL_read(peer.ssl.get(), buffer, sizeof buffer), 6);
  SSL_shutdown(peer.ssl.get());
  stream->put(peer.take());
  EXPECT_FALSE(stream->open(plain, 1 << 20));
  EXPECT_TRUE(stream->ended());
  stream->put("\x16\x03\x03\xff\xff nonsense");
}

TEST(TlsTowardsTheClient, WhatIsNoTlsBreaksIt) {
  const auto interceptor = make_interceptor({}).value();
  const auto stream = interceptor->accept(host("web.test"));
  stream->put(std::string_view("\x16\x03\x01\0\x05hello and more", 19));
  EXPECT_EQ(stream->handshake(), StreamState::kFailed);
  EXPECT_EQ(stream->fault().reason, "tls");
}

// --- towards the server: an authority of the test's own stands for a real one

class TowardsTheServer : public testing::Test {
 protected:
  std::string trust() const {
    const std::string path = directory_ / "ca.pem";
    std::ofstream(path) << to_pem(authority_.certificate());
    return path;
  }
  StreamState connect(const char* name, X509* leaf, std::string ca_file) {
    const auto interceptor = make_interceptor({.ca_file = std::move(ca_file)}).value();
    TlsPeer peer(TLS_server_method());
    peer.begin();
    SSL_use_certificate(peer.ssl.get(), leaf);
    SSL_use_PrivateKey(peer.ssl.get(), authority_.leaf_key());
    SSL_set_accept_state(peer.ssl.get());
    const auto stream = interceptor->connect(host(name));
    StreamState state = StreamState::kMore;
    for (int round = 0; round < 10 && state == StreamState::kMore; ++round) {
      state = stream->handshake();
      peer.put(stream->take());
      SSL_do_handshake(peer.ssl.get());
      stream->put(peer.take());
    }
    reason_ = stream->fault().reason;
    return state;
  }

  test::TempDir directory_;
  Authority authority_ = Authority::create().value();
  std::string reason_;
};

TEST_F(TowardsTheServer, AGoodCertificateIsTakenAndEachOtherHasItsReason) {
  const std::string ca = trust();
  EXPECT_EQ(connect("web.test", authority_.leaf_for(host("web.test")), ca), StreamState::kReady);
  EXPECT_EQ(connect("192.0.2.7", authority_.leaf_for(host("192.0.2.7")), ca), StreamState::kReady);
  EXPECT_EQ(connect("web.test", authority_.leaf_for(host("other.test")), ca), StreamState::kFailed);
  EXPECT_EQ(reason_, "tls-name");
  EXPECT_EQ(connect("web.test", authority_.leaf_for(host("web.test")), ""), StreamState::kFailed);
  EXPECT_EQ(reason_, "tls-untrusted");
  EXPECT_EQ(connect("web.test", authority_.leaf_for(host("web.test"), WallClock::now() - hours(24 * 60)), ca), StreamState::kReady)
      << "kept: still the good one";
  EXPECT_EQ(connect("late.test", authority_.leaf_for(host("late.test"), WallClock::now() - hours(24 * 60)), ca),
            StreamState::kFailed);
  EXPECT_EQ(reason_, "tls-expired");
}

TEST_F(TowardsTheServer, AFileWithoutCertificatesIsRefusedByName) {
  const std::string path = directory_ / "empty.pem";
  std::ofstream(path) << "nothing\n";
  const auto made = make_interceptor({.ca_file = path});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what().find("empty.pem"), std::string::npos);
  EXPECT_FALSE(make_interceptor({.ca_file = directory_ / "missing.pem"}));
}

TEST(Trust, TheBundleHoldsTheMachinesRootsAndOurs) {
  const auto interceptor = make_interceptor({}).value();
  EXPECT_EQ(certificates_of(interceptor->bundle()).size(), certificates_of(system_bundle()).size() + 1);
  const std::string store = interceptor->java_store();
  EXPECT_EQ(store.substr(0, 8), std::string("\xFE\xED\xFE\xED\0\0\0\2", 8));
}

}  // namespace
}  // namespace belljar::egress::tls
