/* A sandbox that stays, from C: a file written, a command on it, what came of it read back.
 *
 *   keep_sandbox_c DIRECTORY */
#include <stdio.h>
#include <string.h>

#include "belljar/belljar.h"

static int fail(belljar_error* error) {
  fprintf(stderr, "%s\n", belljar_error_message(error));
  belljar_error_free(error);
  return 125;
}

static int work(belljar_sandbox* sandbox) {
  static const char words[] = "pear\napple\nplum\n";
  belljar_error* error = NULL;
  belljar_result* result = NULL;
  char* sorted = NULL;
  if (belljar_write_file(sandbox, "words", words, strlen(words), &error) != BELLJAR_OK) return fail(error);
  belljar_exec_options options = BELLJAR_EXEC_OPTIONS_INIT;
  options.timeout_ms = 10000;
  if (belljar_shell(sandbox, "sort words >sorted && wc -l <sorted", &options, &result, &error) != BELLJAR_OK) return fail(error);
  printf("%s, exit code %d: %s", belljar_result_reason(result), belljar_result_exit_code(result),
         belljar_result_stdout(result, NULL));
  belljar_result_free(result);
  if (belljar_read_file(sandbox, "sorted", &sorted, NULL, &error) != BELLJAR_OK) return fail(error);
  fputs(sorted, stdout);
  belljar_free(sorted);

  /* What the policy refuses is a result, too, and says so. */
  const char* const forbidden[] = {"touch", "/etc/belljar-no", NULL};
  if (belljar_exec(sandbox, forbidden, NULL, &result, &error) != BELLJAR_OK) return fail(error);
  printf("touch: exit code %d%s\n", belljar_result_exit_code(result), belljar_result_refusals(result)[0] ? ", refused" : "");
  belljar_result_free(result);
  return 0;
}

int main(int argc, char** argv) {
  belljar_sandbox* sandbox = NULL;
  belljar_error* error = NULL;
  belljar_options options = BELLJAR_OPTIONS_INIT;
  int exit_code;
  if (argc != 2) {
    fprintf(stderr, "usage: keep_sandbox_c DIRECTORY\n");
    return 2;
  }
  options.workspace = argv[1];
  if (belljar_create(&options, &sandbox, &error) != BELLJAR_OK) return fail(error);
  exit_code = work(sandbox);
  belljar_destroy(sandbox);
  return exit_code;
}
