// libcurl's functions as src/http calls them, each of which loads the library when it is first needed. Linked in the usual way, it
// and the thirty libraries behind it would be loaded by every start of belljar-full, most of which ask nobody; and a machine
// without libcurl could run none of its components. Hidden, so that libcurl itself never finds these in the place of its own.
//
// What is variadic there takes one argument that a register holds as it is (a long, a pointer, a curl_off_t: curl/curl.h), so it is
// passed on as one pointer. Without libcurl every function fails as it would without memory: src/http says what is missing.
#include <curl/curl.h>
#include <dlfcn.h>

#include <cstdarg>
#include <type_traits>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wvarargs"  // the arguments before the dots are enumerations: so libcurl declares them
#endif
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace {

// The real function of this name, called; `without` where there is no libcurl.
template <class Function, class Answer, class... Arguments>
std::invoke_result_t<Function, Arguments...> call(const char* name, [[maybe_unused]] Answer without,
                                                  Arguments... arguments) noexcept {
  static void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (auto* const real = library != nullptr ? reinterpret_cast<Function*>(::dlsym(library, name)) : nullptr)
    return real(arguments...);
  if constexpr (!std::is_void_v<std::invoke_result_t<Function, Arguments...>>) return without;
}

// Const since libcurl 8.
template <class Answer, class First, class... Others>
First first_of(Answer (*)(First, Others...));
using Url = decltype(first_of(&::curl_url_get));

}  // namespace

#define BELLJAR_HIDDEN extern "C" __attribute__((visibility("hidden")))
#define BELLJAR_CALL(name, without, ...) return call<decltype(::name)>(#name, without __VA_OPT__(, ) __VA_ARGS__)

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libcurl's own say less
BELLJAR_HIDDEN CURLcode curl_global_init(long flags) { BELLJAR_CALL(curl_global_init, CURLE_FAILED_INIT, flags); }
BELLJAR_HIDDEN CURL* curl_easy_init() { BELLJAR_CALL(curl_easy_init, static_cast<CURL*>(nullptr)); }
BELLJAR_HIDDEN CURLcode curl_easy_setopt(CURL* handle, CURLoption which, ...) {
  va_list arguments;
  va_start(arguments, which);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  BELLJAR_CALL(curl_easy_setopt, CURLE_FAILED_INIT, handle, which, argument);
}
BELLJAR_HIDDEN CURLcode curl_easy_getinfo(CURL* handle, CURLINFO which, ...) {
  va_list arguments;
  va_start(arguments, which);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  BELLJAR_CALL(curl_easy_getinfo, CURLE_FAILED_INIT, handle, which, argument);
}
BELLJAR_HIDDEN CURLHcode curl_easy_header(CURL* handle, const char* name, size_t index, unsigned origin, int request,
                                          curl_header** found) {
  BELLJAR_CALL(curl_easy_header, CURLHE_MISSING, handle, name, index, origin, request, found);
}
BELLJAR_HIDDEN const char* curl_easy_strerror(CURLcode code) {
  BELLJAR_CALL(curl_easy_strerror, static_cast<const char*>("libcurl is not installed"), code);
}
BELLJAR_HIDDEN CURLM* curl_multi_init() { BELLJAR_CALL(curl_multi_init, static_cast<CURLM*>(nullptr)); }
BELLJAR_HIDDEN CURLMcode curl_multi_add_handle(CURLM* multi, CURL* handle) {
  BELLJAR_CALL(curl_multi_add_handle, CURLM_BAD_HANDLE, multi, handle);
}
BELLJAR_HIDDEN CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* handle) {
  BELLJAR_CALL(curl_multi_remove_handle, CURLM_BAD_HANDLE, multi, handle);
}
BELLJAR_HIDDEN CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  BELLJAR_CALL(curl_multi_perform, CURLM_BAD_HANDLE, multi, running);
}
BELLJAR_HIDDEN CURLMcode curl_multi_poll(CURLM* multi, curl_waitfd* fds, unsigned count, int timeout_ms, int* ready) {
  BELLJAR_CALL(curl_multi_poll, CURLM_BAD_HANDLE, multi, fds, count, timeout_ms, ready);
}
BELLJAR_HIDDEN CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
  BELLJAR_CALL(curl_multi_info_read, static_cast<CURLMsg*>(nullptr), multi, left);
}
BELLJAR_HIDDEN CURLMcode curl_multi_cleanup(CURLM* multi) { BELLJAR_CALL(curl_multi_cleanup, CURLM_BAD_HANDLE, multi); }
BELLJAR_HIDDEN curl_mime* curl_mime_init(CURL* handle) { BELLJAR_CALL(curl_mime_init, static_cast<curl_mime*>(nullptr), handle); }
BELLJAR_HIDDEN curl_mimepart* curl_mime_addpart(curl_mime* form) {
  BELLJAR_CALL(curl_mime_addpart, static_cast<curl_mimepart*>(nullptr), form);
}
BELLJAR_HIDDEN CURLcode curl_mime_name(curl_mimepart* part, const char* name) {
  BELLJAR_CALL(curl_mime_name, CURLE_FAILED_INIT, part, name);
}
BELLJAR_HIDDEN CURLcode curl_mime_filename(curl_mimepart* part, const char* name) {
  BELLJAR_CALL(curl_mime_filename, CURLE_FAILED_INIT, part, name);
}
BELLJAR_HIDDEN CURLcode curl_mime_type(curl_mimepart* part, const char* type) {
  BELLJAR_CALL(curl_mime_type, CURLE_FAILED_INIT, part, type);
}
BELLJAR_HIDDEN CURLcode curl_mime_data_cb(curl_mimepart* part, curl_off_t size, curl_read_callback read, curl_seek_callback seek,
                                          curl_free_callback free, void* self) {
  BELLJAR_CALL(curl_mime_data_cb, CURLE_FAILED_INIT, part, size, read, seek, free, self);
}
BELLJAR_HIDDEN curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  BELLJAR_CALL(curl_slist_append, static_cast<curl_slist*>(nullptr), list, text);
}
BELLJAR_HIDDEN CURLU* curl_url() { BELLJAR_CALL(curl_url, static_cast<CURLU*>(nullptr)); }
BELLJAR_HIDDEN CURLUcode curl_url_set(CURLU* url, CURLUPart part, const char* text, unsigned flags) {
  BELLJAR_CALL(curl_url_set, CURLUE_OUT_OF_MEMORY, url, part, text, flags);
}
BELLJAR_HIDDEN CURLUcode curl_url_get(Url url, CURLUPart part, char** text, unsigned flags) {
  BELLJAR_CALL(curl_url_get, CURLUE_OUT_OF_MEMORY, url, part, text, flags);
}
BELLJAR_HIDDEN void curl_easy_reset(CURL* handle) { BELLJAR_CALL(curl_easy_reset, nullptr, handle); }
BELLJAR_HIDDEN void curl_easy_cleanup(CURL* handle) { BELLJAR_CALL(curl_easy_cleanup, nullptr, handle); }
BELLJAR_HIDDEN void curl_mime_free(curl_mime* form) { BELLJAR_CALL(curl_mime_free, nullptr, form); }
BELLJAR_HIDDEN void curl_slist_free_all(curl_slist* list) { BELLJAR_CALL(curl_slist_free_all, nullptr, list); }
BELLJAR_HIDDEN void curl_url_cleanup(CURLU* url) { BELLJAR_CALL(curl_url_cleanup, nullptr, url); }
BELLJAR_HIDDEN void curl_free(void* memory) { BELLJAR_CALL(curl_free, nullptr, memory); }
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
