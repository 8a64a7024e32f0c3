// Every error of a layer at once, by a check that stops at its first.
//
// The check was written to return one error, and to make all of it go on after errors would have to be done
// in every function below it. So it is run again and again: settings are left out as long as the error stays,
// which finds the settings that it rests on; the last of them is its place. That one is removed, and the next
// round finds the next error. Within a list the element is found by halving.
//
// The cost is one check for each setting and error, which a policy's size allows.
#include "policy/all_errors.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/layer.h"

namespace belljar::policy {
namespace {

template <class T>
constexpr bool kIsList = false;
template <class T>
constexpr bool kIsList<std::vector<T>> = true;

std::size_t elements_of(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::size_t {
        if constexpr (kIsList<std::decay_t<decltype(held)>>) return held.size();
        else return 0;
      },
      value);
}

// Without the elements [first, last).
Setting without(const Setting& setting, std::size_t first, std::size_t last) {
  Setting rest = setting;
  const auto cut = [&](auto& list) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(first), list.begin() + static_cast<std::ptrdiff_t>(last));
  };
  std::visit(
      [&](auto& held) {
        if constexpr (kIsList<std::decay_t<decltype(held)>>) cut(held);
      },
      rest.value);
  if (rest.items.size() >= last) cut(rest.items);
  return rest;
}

Origin element_origin(const Setting& setting, std::size_t at) {
  if (const auto* entries = std::get_if<std::vector<FsEntry>>(&setting.value)) return (*entries)[at].origin;
  if (const auto* volumes = std::get_if<std::vector<Volume>>(&setting.value)) return (*volumes)[at].origin;
  return at < setting.items.size() ? setting.items[at] : setting.origin;
}

// One round: the first error of `layer`, at its place, and the layer without what it rests on.
class Round {
 public:
  Round(Layer& layer, const LayerCheck& check, std::string line) : layer_(layer), check_(check), line_(std::move(line)) {}

  // The error stays as it is without this.
  bool stays(const Layer& layer) const {
    const auto checked = check_(layer);
    return !checked && checked.error().line() == line_;
  }

  // Leaves out all that the error does not need; of what is left the last setting is its place. None: it rests on no setting.
  bool find() {
    Layer rest = layer_;
    for (std::size_t i = 0; i < rest.settings.size();) {
      Layer fewer = rest;
      fewer.settings.erase(fewer.settings.begin() + static_cast<std::ptrdiff_t>(i));
      if (stays(fewer)) rest = std::move(fewer);
      else ++i;
    }
    if (rest.settings.empty()) return false;
    const Key* const key = rest.settings.back().key;
    const auto found = std::ranges::find(layer_.settings, key, &Setting::key);
    origin_ = found->origin;
    const std::size_t count = elements_of(found->value);
    if (count < 2) {
      layer_.settings.erase(found);
      return true;
    }
    // Of a list one element: halves are left out as long as the error stays.
    std::size_t first = 0, last = count;
    const Setting whole = *found;  // NOLINT(performance-unnecessary-copy-initialization): *found is changed below
    while (last - first > 1) {
      const std::size_t middle = first + (last - first) / 2;
      *found = without(whole, first, middle);
      if (stays(layer_)) first = middle;
      else last = middle;
    }
    origin_ = element_origin(whole, first);
    *found = without(whole, first, last);
    return true;
  }

  const Origin& origin() const noexcept { return origin_; }

 private:
  Layer& layer_;
  const LayerCheck& check_;
  const std::string line_;
  Origin origin_;
};

}  // namespace

std::vector<Error> all_errors(Layer layer, const LayerCheck& check) {
  std::vector<Error> errors;
  while (errors.size() < kMostErrors) {
    auto checked = check(layer);
    if (checked) break;
    Error error = std::move(checked).error();
    const std::string line = error.line();
    Round round(layer, check, line);
    const bool placed = round.find();
    const std::string place = placed ? to_string(round.origin()) : std::string();
    // Two settings of which each is enough for one error: it is told once for each place.
    if (placed && !place.empty() && error.what().find(round.origin().file) == std::string::npos)
      error = Error(error.code(), format("{}: {}", place, error.what())).reason(error.reason()).next(error.next());
    if (std::ranges::find(errors, error.line(), [](const Error& one) { return one.line(); }) == errors.end())
      errors.push_back(std::move(error));
    if (!placed) break;
  }
  return errors;
}

}  // namespace belljar::policy
