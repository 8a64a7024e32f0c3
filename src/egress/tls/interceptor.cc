// Interception by OpenSSL: one context for clients, with certificates of our own, and one for servers, with
// the machine's roots.
//
// Towards the client a name in SNI must be the host of the tunnel, and ALPN must offer what is read here.
// Sessions are not kept: a handshake on loopback costs less than the memory. Towards the server, the
// certificate must be valid for the host that the rules allowed, not for what the client's SNI said; partial
// wildcards and the subject's common name do not count (RFC 6125). Sessions are kept by host, so a resumed
// one is of a server whose certificate was good for that name.
//
// The roots are parsed with the first connection to a server and not when the sandbox starts.
#include "egress/tls/interceptor.h"

#include <openssl/err.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/format.h"
#include "egress/h2/client_side.h"
#include "egress/h2/server_side.h"
#include "egress/tls/authority.h"
#include "egress/tls/stream.h"
#include "egress/tls/trust.h"

namespace belljar::egress::tls {
namespace {

constexpr std::string_view kSpoken[] = {"h2", "http/1.1", "http/1.0"};  // the better one first
constexpr unsigned char kHttp1[] = "\x08http/1.1";
constexpr unsigned char kHttp2[] = "\x02h2\x08http/1.1";
constexpr std::size_t kMostSessions = 256;

// The name in SNI as the rules spell it: case and a last dot do not count.
std::string canonical_name(std::string_view name) {
  const auto host = policy::parse_host(name);
  return host && !host->ip ? host->name : std::string();
}

// Without SNI the client means the host that it asked the proxy for. Another name is domain fronting, or ECH whose outer name is
// the operator's.
int on_server_name(SSL* ssl, int* alert, void*) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  Stream& stream = Stream::of(ssl);
  if (name == nullptr || canonical_name(name) == stream.expected()) return SSL_TLSEXT_ERR_OK;
  stream.set_fault({"tls-sni", "tls_protocol_error", format("the client asks TLS for {} instead (SNI)", quoted(name))});
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// HTTP/2, 1.1 and 1.0 are what is read here; a client that speaks nothing else has to be told so. Who wants a WebSocket offers
// http/1.1 alone, since we do not take one in HTTP/2 (RFC 8441).
int on_alpn(SSL* ssl, const unsigned char** chosen, unsigned char* size, const unsigned char* list, unsigned length, void*) {
  for (const std::string_view spoken : kSpoken) {
    for (unsigned at = 0; at < length; at += 1U + list[at]) {
      const std::string_view one(reinterpret_cast<const char*>(list) + at + 1, std::min<unsigned>(list[at], length - at - 1));
      if (one != spoken) continue;
      *chosen = list + at + 1;
      *size = list[at];
      return SSL_TLSEXT_ERR_OK;
    }
  }
  Stream::of(ssl).set_fault(
      {"tls-alpn", "tls_protocol_error", "the client offers neither h2 nor http/1.1 (ALPN), and no other is looked into"});
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

class OpensslInterceptor final : public Interceptor {
 public:
  static Result<std::unique_ptr<Interceptor>> create(const InterceptorOptions& options) {
    auto made = std::make_unique<OpensslInterceptor>();
    made->authority_.emplace(BELLJAR_TRY(Authority::create()));
    made->roots_ = system_bundle();
    if (!options.ca_file.empty()) made->extra_ = BELLJAR_TRY(read_bundle(options.ca_file));
    made->server_.reset(SSL_CTX_new(TLS_server_method()));
    made->client_.reset(SSL_CTX_new(TLS_client_method()));
    if (!made->server_ || !made->client_) return Error(Code::kUnavailable, "cannot look into TLS").reason(take_error());
    made->set_up_server();
    made->set_up_client();
    return std::unique_ptr<Interceptor>(std::move(made));
  }

  std::unique_ptr<SecureStream> accept(const policy::Host& host) override {
    X509* const leaf = authority_->leaf_for(host);
    SslPtr ssl(SSL_new(server_.get()));
    if (leaf == nullptr || !ssl || SSL_use_certificate(ssl.get(), leaf) != 1 ||
        SSL_use_PrivateKey(ssl.get(), authority_->leaf_key()) != 1)
      return ERR_clear_error(), nullptr;
    SSL_set_accept_state(ssl.get());
    return std::make_unique<Stream>(std::move(ssl), host.name);
  }

  std::unique_ptr<SecureStream> connect(const policy::Host& host, Offer offer) override {
    load_roots();
    SslPtr ssl(SSL_new(client_.get()));
    if (!ssl) return ERR_clear_error(), nullptr;
    const std::string name = policy::to_string(host);
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl.get());
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const bool set = host.ip ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1
                             : X509_VERIFY_PARAM_set1_host(wanted, name.data(), name.size()) == 1 &&
                                   SSL_set_tlsext_host_name(ssl.get(), name.c_str()) == 1;
    if (!set) return ERR_clear_error(), nullptr;
    if (const auto kept = sessions_.find(name); kept != sessions_.end()) SSL_set_session(ssl.get(), kept->second.get());
    SSL_set_connect_state(ssl.get());
    if (offer == Offer::kHttp1) return std::make_unique<Stream>(std::move(ssl), name);
    SSL_set_alpn_protos(ssl.get(), kHttp2, sizeof kHttp2 - 1);
    return h2::speak_to_server(std::make_unique<Stream>(std::move(ssl), name));
  }

  std::unique_ptr<Streams> begin_streams() override { return h2::make_streams(); }

  std::string bundle() const override {
    return roots_ + (roots_.empty() || roots_.ends_with('\n') ? "" : "\n") + extra_ +
           (extra_.empty() || extra_.ends_with('\n') ? "" : "\n") + to_pem(authority_->certificate());
  }
  std::string java_store() const override { return tls::java_store(certificates_of(bundle())); }

 private:
  void set_up_server() {
    SSL_CTX* const context = server_.get();
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context,
                                   SSL_SESS_CACHE_OFF);  // a handshake on loopback costs less than what is kept for the next
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_tlsext_servername_callback(context, on_server_name);
    SSL_CTX_set_alpn_select_cb(context, on_alpn, nullptr);
  }

  void set_up_client() {
    SSL_CTX* const context = client_.get();
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_alpn_protos(context, kHttp1, sizeof kHttp1 - 1);
    SSL_CTX_set_app_data(context, this);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, [](SSL* ssl, SSL_SESSION* session) {
      static_cast<OpensslInterceptor*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))->keep(Stream::of(ssl).expected(), session);
      return 1;  // it is ours now
    });
  }

  // A session is one of a server whose certificate was good; the name is part of the key.
  void keep(const std::string& name, SSL_SESSION* session) {
    if (sessions_.size() >= kMostSessions) sessions_.clear();
    sessions_[name].reset(session);
  }

  // 140 certificates are parsed when the first server is asked, not when the sandbox starts.
  void load_roots() {
    if (std::exchange(loaded_, true)) return;
    X509_STORE* const store = SSL_CTX_get_cert_store(client_.get());
    add_to_store(store, roots_);
    add_to_store(store, extra_);
  }

  std::optional<Authority> authority_;
  std::string roots_, extra_;
  CtxPtr server_, client_;
  std::map<std::string, SessionPtr> sessions_;
  bool loaded_ = false;
};

}  // namespace

Result<std::unique_ptr<Interceptor>> make_interceptor(const InterceptorOptions& options) {
  return OpensslInterceptor::create(options);
}

}  // namespace belljar::egress::tls
