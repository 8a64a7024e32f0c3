// Any bytes as a patch, on any file: no crash, no hang; what applies can be said again as lines that were kept, taken out and put
// in.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/patch.h"

using namespace belljar::tools;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // The first half up to a NUL is the file, the rest the patch.
  const std::size_t cut = input.find('\0');
  const std::string_view before = cut == std::string_view::npos ? "a\nb\nc\n" : input.substr(0, cut);
  const std::string_view text = cut == std::string_view::npos ? input : input.substr(cut + 1);
  const auto patches = parse_patch(text);
  if (!patches) return 0;
  if (patches->empty()) std::abort();
  for (const FilePatch& patch : *patches) {
    if (!patch.from && !patch.to) std::abort();
    for (const Hunk& hunk : patch.hunks) {
      std::uint64_t old_lines = 0, new_lines = 0;
      for (const PatchLine& line : hunk.lines) {
        old_lines += line.kind != LineKind::kAdded ? 1 : 0;
        new_lines += line.kind != LineKind::kRemoved ? 1 : 0;
        if (line.text.find('\n') != std::string_view::npos) std::abort();
      }
      if (old_lines != hunk.old_count || new_lines != hunk.new_count) std::abort();
    }
    const auto done = apply_hunks(before, patch);
    if (done && patch.hunks.empty() && done->text != before) std::abort();
  }
  return 0;
}
