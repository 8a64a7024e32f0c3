// Values of the Sandbox interface as JSON and back, for recordings.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "belljar/sandbox.h"
#include "belljar/txn.h"

namespace belljar::decorate {

using Json = nlohmann::json;  // keys sorted: alike calls read alike

// A string where the bytes are UTF-8, else {"hex": "..."}.
Json from_bytes(std::string_view bytes);
std::string to_bytes(const Json& json);
std::string key_of(std::string_view bytes);  // a name as a key: hexadecimal where it is no UTF-8

Json to_json(const ExecResult& result);
Json to_json(const SandboxStats& stats);
Json to_json(const FileInfo& info);
Json to_json(const std::vector<FileInfo>& files);
Json to_json(const GlobResult& result);
Json to_json(const GrepResult& result);
Json to_json(const std::vector<txn::Change>& changes);
inline Json to_json(const std::string& bytes) { return from_bytes(bytes); }
Json to_json(const Error& error);

void from_json(const Json& json, ExecResult& result);
void from_json(const Json& json, SandboxStats& stats);
void from_json(const Json& json, FileInfo& info);
void from_json(const Json& json, std::vector<FileInfo>& files);
void from_json(const Json& json, GlobResult& result);
void from_json(const Json& json, GrepResult& result);
void from_json(const Json& json, std::vector<txn::Change>& changes);
inline void from_json(const Json& json, std::string& bytes) { bytes = to_bytes(json); }
Error error_from(const Json& json);

template <class R>
Json answer_of(const R& result) {
  if (!result) return {{"error", to_json(result.error())}};
  if constexpr (std::is_void_v<typename R::value_type>) return {{"value", nullptr}};
  else return {{"value", to_json(*result)}};
}

Error damaged_answer();

// Errors: the recorded one; kDataLoss, the answer is of another shape.
template <class T>
Result<T> answer_from(const Json& json) {
  if (json.contains("error")) return error_from(json["error"]);
  if (!json.contains("value")) return damaged_answer();
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    T value;
    try {
      from_json(json["value"], value);
    } catch (const std::exception&) {
      return damaged_answer();
    }
    return value;
  }
}

}  // namespace belljar::decorate
