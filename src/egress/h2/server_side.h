// HTTP/2 with a server, as its client, for one request: HTTP/1.1's text in, HTTP/1.1's text out (RFC 9113).
#pragma once

#include <memory>

#include "egress/intercept.h"

namespace belljar::egress::h2 {

// `tls` offers h2. Where the server takes it, seal() reads a request as text and open() gives its answer so; where not, both are
// those of `tls`.
std::unique_ptr<SecureStream> speak_to_server(std::unique_ptr<SecureStream> tls);

}  // namespace belljar::egress::h2
