// One POST and its answer, with two clocks: `timeout` for the whole exchange, and `silence` since the last
// byte.
//
// A model may think for a minute and then stream for ten, so neither clock can do the other's work. Pieces go
// to the caller only with status 200: the body of an error is kept for the message.
#include "http/post.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"

namespace belljar::http {
namespace {

using std::chrono::milliseconds;

Error failed(Code code, std::string why) { return Error(code, "the endpoint gave no answer").reason(std::move(why)); }

// What went wrong below, in the words of who asked.
Error explain(const Error& error, const Post& post) {
  if (error.code() == Code::kResourceExhausted) return failed(error.code(), format("it is larger than {} bytes", post.most_bytes));
  if (error.code() == Code::kDeadlineExceeded)
    return failed(error.code(), format("nothing whole within {} ms", post.timeout.count()));
  return failed(error.code(), error.reason());
}

}  // namespace

Result<Reply> post(const Post& what, const OnPiece& on_piece) {
  Request request{.method = "POST",
                  .url = what.url,
                  .headers = what.headers,
                  .body = what.body,
                  .most_reply = what.most_bytes,
                  .connect_within = std::chrono::minutes(5)};
  if (what.timeout.count() > 0) request.deadline = Clock::now() + what.timeout;
  const auto stream = Client().open(std::move(request));
  if (!stream) return explain(stream.error(), what);
  auto last_byte = Clock::now();
  std::string body;
  for (;;) {
    const auto until = what.silence.count() > 0 ? last_byte + what.silence : Clock::now() + std::chrono::hours(1);
    const auto came = (*stream)->wait(until, {&what.cancel_fd, 1});
    if (!came) return explain(came.error(), what);
    if (*came == Stream::Progress::kEnd) {
      Reply reply = (*stream)->head();
      reply.body = std::move(body);
      return reply;
    }
    if (*came == Stream::Progress::kNothing) {
      if (Clock::now() < until) return failed(Code::kCanceled, "it was cancelled");
      if (what.silence.count() > 0) return failed(Code::kDeadlineExceeded, format("not a byte for {} ms", what.silence.count()));
      continue;
    }
    last_byte = Clock::now();
    const std::string piece = (*stream)->take();
    if (!on_piece || (*stream)->status() != 200) body += piece;
    else if (!on_piece(piece)) return failed(Code::kAborted, "it is not what was expected");
  }
}

Result<void> check_endpoint(const std::string& url, std::string_view what) {
  const auto parts = parse_url(url);
  const auto bad = [&] { return Error(Code::kInvalidArgument, format("cannot ask {} at {}", what, belljar::quoted(url))); };
  if (!parts) return bad().next("use https://HOST");
  if (parts->has_user) return bad().reason("a password in a URL is shown to everybody who sees it");
  if (parts->scheme == "http" && !is_this_machine(parts->host))
    return bad()
        .reason("over plain http everybody on the way reads the key and what is said")
        .next("use https://, or an endpoint of this machine");
  return {};
}

}  // namespace belljar::http
