// Results and errors as C sees them.
//
// No exception may pass through C, so every call goes through guarded(). Even the report of an error may run
// out of memory; then there is a code and no error object, which the accessors take for "no memory".
#include "capi/values.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::capi {
namespace {

// Ours in the same order, without an "ok".
static_assert(static_cast<int>(Code::kCanceled) + 1 == BELLJAR_CANCELED);
static_assert(static_cast<int>(Code::kNotFound) + 1 == BELLJAR_NOT_FOUND);
static_assert(static_cast<int>(Code::kUnauthenticated) + 1 == BELLJAR_UNAUTHENTICATED);
belljar_code code_of(Code code) noexcept { return static_cast<belljar_code>(static_cast<int>(code) + 1); }

belljar_code fail(belljar_error** error, const Error& why) {
  if (error != nullptr) *error = new belljar_error{why.code(), why.line()};
  return code_of(why.code());
}

}  // namespace

belljar_code guarded(belljar_error** error, const std::function<Result<void>()>& work) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    try {
      const auto done = work();
      return done ? BELLJAR_OK : fail(error, done.error());
    } catch (const std::bad_alloc&) {
      return BELLJAR_RESOURCE_EXHAUSTED;
    } catch (const std::exception& bug) {
      return fail(error, Error(Code::kInternal, escaped(bug.what())));
    }
  } catch (...) {  // no memory for the error itself
    return BELLJAR_RESOURCE_EXHAUSTED;
  }
}

}  // namespace belljar::capi

extern "C" {

int belljar_result_exit_code(const belljar_result* result) { return result == nullptr ? 125 : result->result.exit_code; }
const char* belljar_result_reason(const belljar_result* result) { return result == nullptr ? "" : result->reason.c_str(); }
const char* belljar_result_message(const belljar_result* result) { return result == nullptr ? "" : result->result.message.c_str(); }
const char* belljar_result_refusals(const belljar_result* result) { return result == nullptr ? "" : result->refusals.c_str(); }
std::int64_t belljar_result_duration_us(const belljar_result* result) {
  return result == nullptr ? 0 : result->result.duration.count();
}

static const char* stream_of(const belljar_result* result, belljar::Output belljar::ExecResult::* stream, std::size_t* size) {
  if (size != nullptr) *size = result == nullptr ? 0 : (result->result.*stream).bytes.size();
  return result == nullptr ? "" : (result->result.*stream).bytes.c_str();
}
const char* belljar_result_stdout(const belljar_result* result, std::size_t* size) {
  return stream_of(result, &belljar::ExecResult::out, size);
}
const char* belljar_result_stderr(const belljar_result* result, std::size_t* size) {
  return stream_of(result, &belljar::ExecResult::err, size);
}
void belljar_result_free(belljar_result* result) { delete result; }

belljar_code belljar_error_code(const belljar_error* error) {
  return error == nullptr ? BELLJAR_RESOURCE_EXHAUSTED : belljar::capi::code_of(error->code);
}
const char* belljar_error_message(const belljar_error* error) {
  return error == nullptr ? "there was no memory to say more" : error->line.c_str();
}
void belljar_error_free(belljar_error* error) { delete error; }

void belljar_free(void* bytes) { std::free(bytes); }

}  // extern "C"
