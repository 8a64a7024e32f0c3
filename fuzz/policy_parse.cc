// Any bytes as a policy, TOML and JSON: no crash, no hang, and what is accepted merges, shows and reads back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/explain.h"
#include "policy/merge.h"
#include "policy/parse.h"

using namespace belljar::policy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"f.toml", "f.json"}) {
    auto layer = parse_policy(text, file, "user");
    if (!layer) {
      if (layer.error().what().empty()) std::abort();
      continue;
    }
    const MergeContext context{.workspace = "/w", .home = "/h"};
    for (const bool narrow : {false, true}) {
      layer->narrow_only = narrow;
      const std::vector<Layer> layers{*layer};
      const auto effective = merge(layers, context);
      if (!effective) continue;
      const std::string shown = narrow ? to_json_text(*effective) : to_toml_text(*effective);
      const auto again = parse_policy(shown, narrow ? "s.json" : "s.toml", "user");
      if (!again) std::abort();
      if (explain_text(*effective).empty()) std::abort();
    }
  }
  return 0;
}
