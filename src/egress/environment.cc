#include "egress/environment.h"

#include "base/format.h"

namespace belljar::egress {

std::vector<std::pair<std::string, std::string>> proxy_environment(std::uint16_t port, const std::string& credential,
                                                                   const std::string& java_options) {
  // Servers of the sandbox itself are reached directly; everything else has no other way, so nothing private is excepted.
  constexpr char kDirect[] = "localhost,127.0.0.1,::1";
  const std::string url = format("http://{}{}127.0.0.1:{}", credential, credential.empty() ? "" : "@", port);
  std::vector<std::pair<std::string, std::string>> env;
  // ALL_PROXY is no socks5h:// URL: programs that know only HTTP proxies (Python's httpx) refuse to start with one.
  for (const char* name : {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"})
    env.emplace_back(name, url);
  for (const char* name : {"NO_PROXY", "no_proxy"}) env.emplace_back(name, kDirect);
  env.emplace_back("NODE_USE_ENV_PROXY", "1");      // Node's fetch and http, from 22.21 and 24.5 on
  env.emplace_back("npm_config_proxy", url);        // npm and old yarn, where a user's .npmrc says otherwise
  env.emplace_back("npm_config_https_proxy", url);  //
  env.emplace_back("npm_config_noproxy", kDirect);  //
  env.emplace_back("YARN_HTTP_PROXY", url);         // yarn 2 and later
  env.emplace_back("YARN_HTTPS_PROXY", url);        //
  env.emplace_back("CARGO_HTTP_PROXY", url);        //
  env.emplace_back("PIP_PROXY", url);               //
  env.emplace_back("ELECTRON_GET_USE_PROXY", "1");  //
  env.emplace_back("CLOUDSDK_PROXY_TYPE", "http");  // gcloud
  env.emplace_back("CLOUDSDK_PROXY_ADDRESS", "127.0.0.1");
  env.emplace_back("CLOUDSDK_PROXY_PORT", format("{}", port));
  if (credential.empty())  // the JVM has no option for a credential
    env.emplace_back("JAVA_TOOL_OPTIONS",
                     format("{}{}-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={} "
                            "-Dhttp.nonProxyHosts=localhost|127.*|[::1]",
                            java_options, java_options.empty() ? "" : " ", port, port));
  return env;
}

std::vector<std::pair<std::string, std::string>> trust_environment(const std::string& bundle, const std::string& java_store,
                                                                   const std::string& java_options) {
  std::vector<std::pair<std::string, std::string>> env;
  for (const char* name :
       {"SSL_CERT_FILE",        // OpenSSL and what uses it, Python's ssl, Go, Ruby, rustls' native roots
        "CURL_CA_BUNDLE",       // curl
        "REQUESTS_CA_BUNDLE",   // Python's requests, which carries roots of its own
        "PIP_CERT",             //
        "NODE_EXTRA_CA_CERTS",  // Node, npm: beside its own
        "GIT_SSL_CAINFO",       //
        "CARGO_HTTP_CAINFO",    //
        "AWS_CA_BUNDLE",        // aws, boto
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "DENO_CERT",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"})  // C++, Python, Ruby; what else speaks gRPC uses the roots of its language

    env.emplace_back(name, bundle);
  env.emplace_back("JAVA_TOOL_OPTIONS", format("{}{}-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStoreType=JKS", java_options,
                                               java_options.empty() ? "" : " ", java_store));
  return env;
}

}  // namespace belljar::egress
