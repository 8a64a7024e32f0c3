/* Belljar for C, and for every language that calls C: a sandbox, commands in it, its files.
 *
 *   belljar_sandbox* sandbox = NULL;
 *   belljar_error* error = NULL;
 *   belljar_options options = BELLJAR_OPTIONS_INIT;
 *   options.workspace = "/home/me/project";
 *   if (belljar_create(&options, &sandbox, &error) != BELLJAR_OK) return fail(belljar_error_message(error));
 *   belljar_result* result = NULL;
 *   if (belljar_shell(sandbox, "make test", NULL, &result, &error) == BELLJAR_OK) printf("%d\n", belljar_result_exit_code(result));
 *   belljar_result_free(result);
 *   belljar_destroy(sandbox);
 *
 * A call that could not be done returns a code and, where `error` is not NULL, sets `*error` to what, why and what to do next,
 * which the caller frees. What a command did is never an error: it is a result. Text is UTF-8 or any bytes, ended by NUL; what is
 * given is borrowed for the call; what is returned belongs to the object it was asked of, unless it says otherwise. A sandbox may
 * be used from any thread, also by several calls at once, but not while it is destroyed. In a forked child it stays the parent's:
 * it may be destroyed there, which ends nothing. sandbox.h says what the calls promise.
 *
 * Structs begin with their size, which the initialisers set: a later version may add fields behind. */
#ifndef BELLJAR_BELLJAR_H
#define BELLJAR_BELLJAR_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): this is C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* As in gRPC and Connect. */
typedef enum belljar_code {
  BELLJAR_OK = 0,
  BELLJAR_CANCELED = 1,
  BELLJAR_UNKNOWN = 2,
  BELLJAR_INVALID_ARGUMENT = 3,
  BELLJAR_DEADLINE_EXCEEDED = 4,
  BELLJAR_NOT_FOUND = 5,
  BELLJAR_ALREADY_EXISTS = 6,
  BELLJAR_PERMISSION_DENIED = 7,
  BELLJAR_RESOURCE_EXHAUSTED = 8,
  BELLJAR_FAILED_PRECONDITION = 9,
  BELLJAR_ABORTED = 10,
  BELLJAR_OUT_OF_RANGE = 11,
  BELLJAR_UNIMPLEMENTED = 12,
  BELLJAR_INTERNAL = 13,
  BELLJAR_UNAVAILABLE = 14,
  BELLJAR_DATA_LOSS = 15,
  BELLJAR_UNAUTHENTICATED = 16
} belljar_code;

typedef struct belljar_sandbox belljar_sandbox;
typedef struct belljar_result belljar_result;
typedef struct belljar_error belljar_error;

typedef struct belljar_options {
  size_t size;
  const char* workspace;   /* the directory that commands work in; NULL: the current one */
  const char* backend;     /* "native", "landlock", "local" (guard rails only) or "mock"; NULL: native */
  const char* policy_toml; /* a policy, as a policy file says it; NULL: the workspace writable, no network, secrets hidden */
  int64_t idle_timeout_ms; /* unused for so long it ends by itself; 0: never */
} belljar_options;
#define BELLJAR_OPTIONS_INIT {sizeof(belljar_options), NULL, NULL, NULL, 0}

typedef struct belljar_exec_options {
  size_t size;
  const char* cwd;        /* absolute, inside the workspace; NULL: the workspace */
  const char* const* env; /* "NAME=VALUE" on top of the policy's, ended by NULL; NULL: none */
  const void* stdin_bytes;
  size_t stdin_size;  /* 0: /dev/null */
  int64_t timeout_ms; /* 0: the policy's, else 30 s */
} belljar_exec_options;
#define BELLJAR_EXEC_OPTIONS_INIT {sizeof(belljar_exec_options), NULL, NULL, NULL, 0, 0}

/* Makes and starts a sandbox. `options` may be NULL. The caller destroys `*sandbox`, which is NULL after an error. */
belljar_code belljar_create(const belljar_options* options, belljar_sandbox** sandbox, belljar_error** error);
/* Ends everything inside. NULL is fine. */
void belljar_destroy(belljar_sandbox* sandbox);

/* Runs a program (`argv` is ended by NULL) or shell text until its end. `options` may be NULL. The caller frees `*result`. */
belljar_code belljar_exec(belljar_sandbox* sandbox, const char* const* argv, const belljar_exec_options* options,
                          belljar_result** result, belljar_error** error);
belljar_code belljar_shell(belljar_sandbox* sandbox, const char* text, const belljar_exec_options* options, belljar_result** result,
                           belljar_error** error);

/* The program's own; 124 timed out; 126, 127 could not be started; 128+n signal n. */
int belljar_result_exit_code(const belljar_result* result);
/* "exited", "signalled", "timeout", "memory", ... and one sentence when it is not "exited". */
const char* belljar_result_reason(const belljar_result* result);
const char* belljar_result_message(const belljar_result* result);
/* What was kept of the streams; `*size` may be NULL. A NUL byte follows, which does not count. */
const char* belljar_result_stdout(const belljar_result* result, size_t* size);
const char* belljar_result_stderr(const belljar_result* result, size_t* size);
int64_t belljar_result_duration_us(const belljar_result* result);
/* Acts that the policy refused, a line each for people and models; "" when there were none. */
const char* belljar_result_refusals(const belljar_result* result);
void belljar_result_free(belljar_result* result);

/* `path` is relative to the workspace or absolute inside it. The caller frees `*bytes` with belljar_free; a NUL byte follows. */
belljar_code belljar_read_file(belljar_sandbox* sandbox, const char* path, char** bytes, size_t* size, belljar_error** error);
/* Replaces the file or makes it, with its parent directories. */
belljar_code belljar_write_file(belljar_sandbox* sandbox, const char* path, const void* bytes, size_t size, belljar_error** error);
void belljar_free(void* bytes);

belljar_code belljar_error_code(const belljar_error* error);
/* All of it on one line; never NULL, also for NULL (then there was no memory for more). */
const char* belljar_error_message(const belljar_error* error);
void belljar_error_free(belljar_error* error);

#ifdef __cplusplus
}
#endif

#endif
