# cmake -DFILES="de.txt;en.txt" -DOUTPUT=x.cc -P embed_words.cmake
set(rows "")
foreach(file IN LISTS FILES)
  file(READ ${file} text)
  string(APPEND rows "    R\"words(${text})words\",\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from src/detect/words/*.txt.
#include <span>
#include <string_view>

#include \"detect/signs.h\"

namespace belljar::detect {
namespace {
constexpr std::string_view kLists[] = {
${rows}};
}  // namespace
std::span<const std::string_view> word_lists() noexcept { return kLists; }
}  // namespace belljar::detect
")
